package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// An Observation is what became of one delivery of a message.
type Observation struct {
	Consumer string
	Event    *Event
	Outcome  Outcome
	Took     time.Duration
	Err      error
}

// Outcome is what became of one delivery of a message.
type Outcome string

// What can become of a delivery.
const (
	Handled   Outcome = "handled"
	Duplicate Outcome = "duplicate" // handled before
	Ignored   Outcome = "ignored"   // of a type that Ignore names
	Unknown   Outcome = "unknown"   // of a type that has no handler here and that Ignore does not name: given back
	Delayed   Outcome = "delayed"   // to be handled again, here or after another delivery: it is not the event's fault
	Failed    Outcome = "failed"    // to be delivered again
	Poisoned  Outcome = "poisoned"  // belongs to the dead letters
)

// Outcomes are all of them.
var Outcomes = []Outcome{Handled, Duplicate, Ignored, Unknown, Delayed, Failed, Poisoned}

// A Verdict is what a loop is to do with a message.
type Verdict struct {
	Outcome Outcome
	// After is how much later a message that failed, or is of an unknown type, should be delivered again.
	After time.Duration
	// Reason tells why a message is not acknowledged, for the dead letter: short, and without secrets or data.
	Reason string
}

// Acknowledge tells whether the broker may forget the message.
func (v Verdict) Acknowledge() bool {
	return v.Outcome == Handled || v.Outcome == Duplicate || v.Outcome == Ignored
}

// A Consumer handles messages, many at a time. A loop calls [Consumer.Process].
type Consumer struct {
	config   Config
	handlers map[string]Handler
	ignored  map[string]bool
	stalls   map[string]*stall // per event type: each has its own handler, and that what it needs
	failures failures
	unknown  unknown
}

// New makes a consumer of these event types. Messages of types that [Ignore] names, and test messages
// ([outbox.TestType]), are acknowledged and not looked at; those of others are given back to the broker.
func New(config Config, rules ...Rule) (*Consumer, error) {
	if err := errors.Join(config.validate(), checkRules(rules)); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	c := &Consumer{
		config: config, handlers: make(map[string]Handler, len(rules)), ignored: ignored(rules), stalls: map[string]*stall{},
	}
	for _, rule := range rules {
		if rule.ignored != nil {
			continue
		}
		handler := rule.handle
		for _, wrap := range slices.Backward(config.Middleware) {
			handler = wrap(config.Name, handler)
		}
		c.handlers[rule.eventType], c.stalls[rule.eventType] = handler, &stall{}
	}
	return c, nil
}

// Name is the consumer's.
func (c *Consumer) Name() string { return c.config.Name }

// Types are the event types that have a handler, sorted.
func (c *Consumer) Types() []string { return slices.Sorted(maps.Keys(c.handlers)) }

// Takes tells whether an event type has a handler or is ignored: what is neither is given back.
func (c *Consumer) Takes(eventType string) bool {
	return c.handlers[eventType] != nil || c.ignored[eventType]
}

// MaxAttempts is how often a message is delivered before it goes to the dead letters.
func (c *Consumer) MaxAttempts() int { return c.config.MaxAttempts }

// Logger is where the consumer logs.
func (c *Consumer) Logger() *slog.Logger { return c.config.Logger }

// Process handles one delivery of a message and says what is to become of it; a loop keeps the message for itself until
// then, however long it takes. attempt counts the deliveries from 1; 0: the broker does not tell.
//
// A handler that cannot handle the event now is run again here: for as long as it returns a [DelayError], and for some
// minutes while every event fails. When ctx ends, that has an end: the verdict is [Delayed], and the message is to be
// delivered again, to whoever is next. A handler that runs has its whole deadline all the same.
func (c *Consumer) Process(ctx context.Context, attributes map[string]string, body []byte, attempt int) Verdict {
	return c.ProcessWith(ctx, attributes, body, attempt, wait.For)
}

// ProcessWith is [Consumer.Process] for a loop that gives the place of a message to others while the message waits.
// pause waits for a time and returns nil, or an error when ctx has ended: then the verdict is [Delayed].
func (c *Consumer) ProcessWith(ctx context.Context, attributes map[string]string, body []byte, attempt int,
	pause func(context.Context, time.Duration) error,
) Verdict {
	event, handler, verdict := c.receive(ctx, attributes, body, attempt)
	if handler == nil {
		return verdict
	}
	for try := 1; ; try++ {
		began := time.Now()
		err := c.handle(context.WithoutCancel(ctx), handler, event)
		verdict := c.report(ctx, event, c.verdictAfter(event, err, try), try, time.Since(began), err)
		if verdict.Outcome != Delayed || pause(ctx, verdict.After) != nil {
			return verdict
		}
	}
}

// Try runs the handler of one event once and says what came of it, for a caller that keeps the events itself, waits
// and counts: relay.Handlers is one. It differs from [Consumer.Process] in that it never waits, that the handler's
// context ends with ctx too, and that no event is given up for having failed often: Config.MaxAttempts is not looked
// at.
//
// [Failed] is then the event's own failure, and [Delayed] nobody's: the handler said so, every event fails, or the
// caller has given up.
func (c *Consumer) Try(ctx context.Context, attributes map[string]string, body []byte, attempt int) Verdict {
	event, handler, verdict := c.receive(ctx, attributes, body, attempt)
	if handler == nil {
		return verdict
	}
	began := time.Now()
	err := c.handle(ctx, handler, event)
	return c.report(ctx, event, c.verdictOnce(ctx, event, err), 1, time.Since(began), err)
}

// receive reads a message and finds the handler of its type. Without one it says what is to become of the message.
func (c *Consumer) receive(
	ctx context.Context, attributes map[string]string, body []byte, attempt int,
) (event *Event, handler Handler, verdict Verdict) {
	event, err := Read(attributes, body)
	event.Attempt = attempt
	if err != nil {
		return event, nil, c.report(ctx, event, Verdict{Outcome: Poisoned}, 1, 0, err)
	}
	if c.ignored[event.Type] {
		return event, nil, c.report(ctx, event, Verdict{Outcome: Ignored}, 1, 0, nil)
	}
	if handler = c.handlers[event.Type]; handler == nil {
		verdict = Verdict{Outcome: Unknown, After: backoff(attempt)}
		return event, nil, c.report(ctx, event, verdict, c.unknown.met(event.Type), 0, errUnknown)
	}
	return event, handler, Verdict{}
}

// verdictOnce is verdictAfter for a caller that counts by itself.
func (c *Consumer) verdictOnce(ctx context.Context, event *Event, err error) Verdict {
	verdict, decided := c.verdictOf(event, err)
	switch {
	case decided:
		return verdict
	case errors.Is(ctx.Err(), context.Canceled), c.stalls[event.Type].failed(event.ID):
		return Verdict{Outcome: Delayed, After: backoff(event.Attempt)}
	default:
		return Verdict{Outcome: Failed, After: backoff(event.Attempt)}
	}
}

// verdictAfter is what follows from a handler's answer.
func (c *Consumer) verdictAfter(event *Event, err error, try int) Verdict {
	if verdict, decided := c.verdictOf(event, err); decided {
		return verdict
	}
	if c.stalls[event.Type].failed(event.ID) {
		if try < stalledTries {
			return Verdict{Outcome: Delayed, After: backoff(try)}
		}
		return Verdict{Outcome: Failed, After: backoff(try)}
	}
	if here := c.failures.count(event.ID); event.Attempt >= c.config.MaxAttempts &&
		here >= min(leastFailures, c.config.MaxAttempts) {
		c.failures.forget(event.ID)
		return Verdict{Outcome: Poisoned}
	}
	return Verdict{Outcome: Failed, After: backoff(event.Attempt)}
}

// verdictOf decides where the answer alone says it. Any other error may be the event's own fault or an outage.
func (c *Consumer) verdictOf(event *Event, err error) (verdict Verdict, decided bool) {
	var delay *DelayError
	var poison *PoisonError
	switch {
	case err == nil:
		c.stalls[event.Type].handled()
		c.failures.forget(event.ID)
		return Verdict{Outcome: Handled}, true
	case errors.Is(err, ErrDuplicate):
		c.failures.forget(event.ID)
		return Verdict{Outcome: Duplicate}, true
	case errors.As(err, &delay):
		return Verdict{Outcome: Delayed, After: max(delay.After, 100*time.Millisecond)}, true
	case errors.As(err, &poison):
		return Verdict{Outcome: Poisoned}, true
	default:
		return Verdict{}, false
	}
}

// handle runs a handler within its deadline. What panics has failed.
func (c *Consumer) handle(ctx context.Context, handler Handler, event *Event) (err error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Deadline)
	defer cancel()
	late := time.AfterFunc(2*c.config.Deadline, func() {
		c.config.Logger.ErrorContext(ctx,
			"a handler goes on after its deadline, and its message waits: it must end when its context does",
			slog.String("consumer", c.config.Name), slog.String("event_id", event.ID.String()),
			slog.String("event_type", clean.Cut(event.Type)))
	})
	defer late.Stop()
	defer func() {
		if cause := recover(); cause != nil {
			c.config.Logger.ErrorContext(ctx, "a handler panicked", slog.String("consumer", c.config.Name),
				slog.String("event_id", event.ID.String()), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("consumer: the handler panicked: %v", cause)
		}
	}()
	return handler(ctx, event)
}

// The first failure is tried again after a second, and then twice as late each time, up to a minute.
func backoff(attempt int) time.Duration {
	return min(time.Second<<min(max(attempt-1, 0), 6), time.Minute)
}

var levels = map[Outcome]slog.Level{
	Handled: slog.LevelDebug, Duplicate: slog.LevelDebug, Ignored: slog.LevelDebug,
	Unknown: slog.LevelWarn, Delayed: slog.LevelInfo, Failed: slog.LevelWarn, Poisoned: slog.LevelError,
}

// report logs a verdict, shows it to the observer, and returns it with its reason.
func (c *Consumer) report(ctx context.Context, event *Event, verdict Verdict, try int, took time.Duration,
	err error,
) Verdict {
	if !verdict.Acknowledge() {
		verdict.Reason = clean.Error(err)
	}
	level := levels[verdict.Outcome]
	if (verdict.Outcome == Delayed || verdict.Outcome == Unknown) && try > 1 {
		level = slog.LevelDebug // neither an outage nor a deployment is a reason to fill the log
	}
	c.config.Logger.LogAttrs(ctx, level, "event", slog.String("consumer", c.config.Name),
		slog.String("event_id", event.ID.String()), slog.String("event_type", clean.Cut(event.Type)),
		slog.String("namespace", clean.Cut(event.Aggregate.Namespace)),
		slog.String("aggregate_type", clean.Cut(event.Aggregate.Type)),
		slog.String("aggregate_id", clean.Cut(event.Aggregate.ID)),
		slog.Int("attempt", event.Attempt), slog.String("outcome", string(verdict.Outcome)),
		slog.Int64("ms", took.Milliseconds()), slog.String("error", verdict.Reason))
	if c.config.Observe != nil {
		c.config.Observe(ctx, Observation{
			Consumer: c.config.Name, Event: event, Outcome: verdict.Outcome, Took: took, Err: err,
		})
	}
	return verdict
}
