package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/consumer"
)

// answerTimeout is how long the server has for its answers, where nobody else says so.
const answerTimeout = 5 * time.Second

// minAckWait leaves time for a few words that keep a message, also on a busy machine.
const minAckWait = time.Second

// permanentError is one that waiting does not fix.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// CheckConsumer looks at everything that [Consume] needs to be so on the server, and says what is not and what to do
// about it. Consume calls it as well; calling it before tells whether the server is there. The server has until ctx
// ends, and five seconds if ctx has no deadline.
func CheckConsumer(ctx context.Context, js jetstream.JetStream, c *consumer.Consumer, config ConsumeConfig) error {
	config, err := config.withDefaults(js, c)
	if err != nil {
		return err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerTimeout)
		defer cancel()
	}
	_, err = find(ctx, js, config)
	return err
}

// find finds the stream's consumer, if it is one that loses nothing.
func find(ctx context.Context, js jetstream.JetStream, config ConsumeConfig) (jetstream.Consumer, error) {
	source, err := js.Consumer(ctx, config.Stream, config.Durable)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, permanentError{fmt.Errorf("natsjetstream: there is no stream %s: make it, or set Stream", config.Stream)}
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil, permanentError{
			fmt.Errorf("natsjetstream: the stream %s has no consumer %s: make it with CreateConsumer and "+
				"natsjetstream.PullConsumer, or set Durable",
				config.Stream, config.Durable),
		}
	case errors.Is(err, jetstream.ErrNotPullConsumer):
		return nil, permanentError{
			fmt.Errorf("natsjetstream: the consumer %s is a push consumer: make a pull consumer", config.Durable),
		}
	case err != nil:
		return nil, fmt.Errorf("natsjetstream: ask for the consumer %s of the stream %s: %w", config.Durable,
			config.Stream, err)
	}
	settings := source.CachedInfo().Config
	if err := checkConsumer(settings); err != nil {
		return nil, permanentError{err}
	}
	return source, checkDeadLetters(ctx, js, config, settings)
}

// checkConsumer says everything that is wrong with the consumer's configuration on the server.
func checkConsumer(settings jetstream.ConsumerConfig) error {
	var problems []error
	wrong := func(is bool, what string) {
		if is {
			problems = append(problems, fmt.Errorf("natsjetstream: the consumer %s: %s", settings.Name, what))
		}
	}
	wrong(settings.AckPolicy != jetstream.AckExplicitPolicy,
		"its ack policy must be explicit, so that every message is acknowledged by itself: make it again with "+
			"AckExplicitPolicy")
	// Not just more than the consumer's attempts: deliveries also end with a crash, or without a dead letter while that
	// cannot be written.
	wrong(settings.MaxDeliver > 0,
		"its server drops messages without a word after MaxDeliver deliveries: set it to -1, the loop has a bound of its "+
			"own and dead letters")
	wrong(ackWait(settings) < minAckWait,
		"its AckWait, or a step of its BackOff, is below a second: messages would come again while they are handled")
	wrong(settings.HeadersOnly, "it leaves out the bodies of messages: set HeadersOnly to false")
	wrong(settings.MaxRequestBatch > 0 || settings.MaxRequestExpires > 0 || settings.MaxRequestMaxBytes > 0,
		"its server would refuse pulls above a MaxRequest: set none of them, the loop asks for no more than it has room for")
	wrong(len(settings.PriorityGroups) > 0, "it has priority groups, which the loop does not know: make one without")
	return errors.Join(problems...)
}

// ackWait is how soon a message that nobody speaks for comes again.
func ackWait(settings jetstream.ConsumerConfig) time.Duration {
	shortest := settings.AckWait
	for _, step := range settings.BackOff {
		shortest = min(shortest, step)
	}
	return shortest
}

func checkDeadLetters(ctx context.Context, js jetstream.JetStream, config ConsumeConfig,
	settings jetstream.ConsumerConfig,
) error {
	stream, err := js.StreamNameBySubject(ctx, config.DeadLetters)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return permanentError{
			fmt.Errorf("natsjetstream: no stream has the subject %s: make one for dead letters, or set DeadLetters",
				config.DeadLetters),
		}
	}
	if err != nil {
		return fmt.Errorf("natsjetstream: ask for the stream of %s: %w", config.DeadLetters, err)
	}
	if stream == config.Stream && receives(settings, config.DeadLetters) {
		return permanentError{fmt.Errorf("natsjetstream: the consumer %s would receive its own dead letters from %s: keep "+
			"them in another stream, or set its FilterSubjects",
			settings.Name, config.DeadLetters)}
	}
	return nil
}

// receives tells whether a consumer is sent what is published to a subject of its stream.
func receives(settings jetstream.ConsumerConfig, subject string) bool {
	filters := settings.FilterSubjects
	if settings.FilterSubject != "" {
		filters = append(filters, settings.FilterSubject)
	}
	for _, filter := range filters {
		if matches(filter, subject) {
			return true
		}
	}
	return len(filters) == 0
}

// matches tells whether a subject is one of those that a filter with wildcards means.
func matches(filter, subject string) bool {
	wanted, parts := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, want := range wanted {
		switch {
		case want == ">":
			return len(parts) > i
		case i >= len(parts) || want != "*" && want != parts[i]:
			return false
		}
	}
	return len(wanted) == len(parts)
}
