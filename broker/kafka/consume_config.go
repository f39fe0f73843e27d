package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
)

// ConsumeConfig says what a loop receives. Topics and DeadLetters have no default.
type ConsumeConfig struct {
	// Topics are those that the events are in.
	Topics []string
	// Group is the consumer group that shares the partitions out and remembers how far each is done. Defaults to the
	// consumer's name.
	Group string
	// DeadLetters is the topic for messages that will not be handled. It must be there, and none of Topics.
	DeadLetters string
	// Concurrency is how many handlers run at a time, each for another aggregate. Defaults to 16.
	Concurrency int
	// MaxAhead is how many messages of a partition may be here that are not committed: as many come again at most when
	// the process dies. Defaults to 1000.
	MaxAhead int
	// CommitInterval is how often the group is told what is done. Defaults to 1 second.
	CommitInterval time.Duration
	// SessionTimeout is how long the group waits for a sign of life before it gives the partitions to others.
	// Defaults to 45 seconds.
	SessionTimeout time.Duration
	// RebalanceTimeout is how long the loop has for giving a partition back, with the handlers that run for it. It
	// should be twice the deadline of a handler. Defaults to 60 seconds.
	RebalanceTimeout time.Duration
	// ObserveLag is told every LagInterval how far the partitions that are assigned to this process are behind. It
	// must be quick. Defaults to nothing.
	ObserveLag func(ctx context.Context, lags []Lag)
	// LagInterval defaults to 10 seconds.
	LagInterval time.Duration
}

// withDefaults fills the zero fields and reports everything that is wrong at once.
func (c ConsumeConfig) withDefaults(handler *consumer.Consumer) (ConsumeConfig, error) {
	if handler == nil {
		return c, errors.New("kafka: make a consumer with consumer.New")
	}
	if c.Group == "" {
		c.Group = handler.Name()
	}
	for _, field := range []struct {
		value  *int
		preset int
	}{{&c.Concurrency, 16}, {&c.MaxAhead, 1000}} {
		if *field.value == 0 {
			*field.value = field.preset
		}
	}
	for _, field := range []struct {
		value  *time.Duration
		preset time.Duration
	}{
		{&c.CommitInterval, time.Second},
		{&c.SessionTimeout, 45 * time.Second},
		{&c.RebalanceTimeout, time.Minute},
		{&c.LagInterval, 10 * time.Second},
	} {
		if *field.value == 0 {
			*field.value = field.preset
		}
	}
	return c, c.validate()
}

func (c ConsumeConfig) validate() error {
	var problems []error
	wrong := func(is bool, what string) {
		if is {
			problems = append(problems, errors.New("kafka: "+what))
		}
	}
	wrong(len(c.Topics) == 0, "Topics is empty: name the topics that the events are in")
	for _, topic := range c.Topics {
		if err := CheckTopic(topic); err != nil {
			problems = append(problems, fmt.Errorf("kafka: Topics: %w", err))
		}
	}
	if err := CheckTopic(c.DeadLetters); err != nil {
		problems = append(problems, fmt.Errorf("kafka: DeadLetters: %w", err))
	}
	wrong(slices.Contains(c.Topics, c.DeadLetters),
		"DeadLetters is among Topics: the consumer would receive its own dead letters")
	wrong(c.Concurrency < 0 || c.MaxAhead < 0, "Concurrency and MaxAhead must not be negative")
	wrong(c.CommitInterval < 0 || c.SessionTimeout < 0 || c.RebalanceTimeout < 0 || c.LagInterval < 0,
		"CommitInterval, SessionTimeout, RebalanceTimeout and LagInterval must not be negative")
	return errors.Join(problems...)
}
