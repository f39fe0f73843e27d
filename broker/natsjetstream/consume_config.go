package natsjetstream

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/consumer"
)

// ConsumeConfig says what a loop receives. Stream and DeadLetters have no default.
type ConsumeConfig struct {
	// Stream is the stream that the events are in.
	Stream string
	// Durable is the name of the stream's consumer, a pull consumer; see [PullConsumer]. Defaults to the consumer's name.
	Durable string
	// DeadLetters is the subject for messages that will not be handled. A stream must have it, and this consumer must
	// not receive it.
	DeadLetters string
	// Concurrency is how many handlers run at a time, each for another aggregate. The loop keeps up to four times as
	// many messages for itself. Defaults to 16.
	Concurrency int
}

// heldPerHandler leaves others something to do while one aggregate has many messages in a row.
const heldPerHandler = 4

// withDefaults fills the zero fields and reports everything that is wrong at once, with the connection as well.
func (c ConsumeConfig) withDefaults(js jetstream.JetStream, handler *consumer.Consumer) (ConsumeConfig, error) {
	if js == nil || handler == nil {
		return c, errors.New("natsjetstream: make a JetStream with jetstream.New and a consumer with consumer.New")
	}
	if c.Durable == "" {
		c.Durable = handler.Name()
	}
	if c.Concurrency == 0 {
		c.Concurrency = 16
	}
	return c, c.validate(js.Conn().Opts)
}

func (c ConsumeConfig) validate(options nats.Options) error {
	var problems []error
	if err := checkName(c.Stream); err != nil {
		problems = append(problems, fmt.Errorf("natsjetstream: Stream %q: %w", c.Stream, err))
	}
	if err := checkName(c.Durable); err != nil {
		problems = append(problems, fmt.Errorf("natsjetstream: Durable %q: %w", c.Durable, err))
	}
	if err := CheckSubject(c.DeadLetters); err != nil {
		problems = append(problems, fmt.Errorf("natsjetstream: DeadLetters %q: %w", c.DeadLetters, err))
	}
	if c.Concurrency < 0 {
		problems = append(problems, errors.New("natsjetstream: Concurrency must not be negative"))
	}
	if !options.AllowReconnect || options.MaxReconnect >= 0 {
		problems = append(problems,
			errors.New("natsjetstream: the connection would give up during an outage: connect with nats.MaxReconnects(-1)"))
	}
	return errors.Join(problems...)
}

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, ".*>/\\") || strings.ContainsFunc(name, notInNames) {
		return errors.New(`a name for NATS has at least one character, and no space, '.', '*', '>', '/' or '\'`)
	}
	return nil
}

func notInNames(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// PullConsumer is a configuration of the stream's consumer that the loop works well with, for
// [jetstream.StreamConsumerManager] or to be read from when somebody else makes it. It receives all subjects of the
// stream unless some are given.
func PullConsumer(c *consumer.Consumer, subjects ...string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:        c.Name(),
		FilterSubjects: subjects,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        30 * time.Second,
		MaxDeliver:     -1,
		// What waits for its next attempt counts as well. With the server's default of 1,000, a few broken events among
		// many good ones would make those wait.
		MaxAckPending: 10_000,
	}
}
