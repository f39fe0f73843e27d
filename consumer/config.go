package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Config says how events are handled. Only Name has no default.
type Config struct {
	// Name is the consumer's own forever: marks in inboxes are under it. `[a-z0-9._-]`, 1 to 64.
	Name string
	// Deadline is how long a handler has for one event; then its context ends. It is also how long a loop takes to stop
	// at most. Defaults to 30 s.
	Deadline time.Duration
	// MaxAttempts is how often a message is delivered before it goes to the dead letters, unless it has failed here fewer
	// than three times: it may have been given back by processes that do not know its type. Defaults to 10.
	// Pub/Sub counts by itself: set it in the subscription's dead-letter policy there.
	MaxAttempts int
	// Middleware is put around every handler, the first outermost. Defaults to nothing.
	Middleware []Middleware
	// Observe is told what became of every message. It must be quick. Defaults to nothing.
	Observe func(ctx context.Context, observation Observation)
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

var names = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

// validate says everything that is wrong with the configuration.
func (c Config) validate() error {
	var problems []error
	if !names.MatchString(c.Name) {
		problems = append(problems, fmt.Errorf("consumer: Name %.80q: it is 1 to 64 of a-z, 0-9, '.', '_' and '-'", c.Name))
	}
	if c.Deadline < 0 || c.MaxAttempts < 0 {
		problems = append(problems, errors.New("consumer: Deadline and MaxAttempts must not be negative"))
	}
	return errors.Join(problems...)
}

// checkRules says everything that is wrong with the handlers.
func checkRules(rules []Rule) error {
	var problems []error
	handled := make(map[string]bool, len(rules))
	for _, rule := range rules {
		switch {
		case rule.ignored != nil:
		case rule.eventType == "" || rule.handle == nil:
			problems = append(problems, fmt.Errorf("consumer: a handler of the event type %.80q: one of them is missing",
				rule.eventType))
		case handled[rule.eventType]:
			problems = append(problems, fmt.Errorf("consumer: the event type %s has two handlers", rule.eventType))
		default:
			handled[rule.eventType] = true
		}
	}
	for eventType := range ignored(rules) {
		switch {
		case eventType == "":
			problems = append(problems, errors.New("consumer: an event type that is ignored has no name"))
		case handled[eventType]:
			problems = append(problems, fmt.Errorf("consumer: the event type %s has a handler and is ignored", eventType))
		}
	}
	if len(handled) == 0 && len(problems) == 0 {
		problems = append(problems, errors.New("consumer: no event type has a handler: see On"))
	}
	return errors.Join(problems...)
}

// ignored are the event types that are named by Ignore.
func ignored(rules []Rule) map[string]bool {
	all := map[string]bool{outbox.TestType: true}
	for _, rule := range rules {
		for _, eventType := range rule.ignored {
			all[eventType] = true
		}
	}
	return all
}

func (c Config) withDefaults() Config {
	if c.Deadline == 0 {
		c.Deadline = 30 * time.Second
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 10
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}
