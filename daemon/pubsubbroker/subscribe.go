package pubsubbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"cloud.google.com/go/pubsub/v2"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

// Subscriptions are some of our own, which take nothing away from others.
type Subscriptions struct {
	client *pubsub.Client
	names  map[string]string // of the subscription, by topic
}

// Subscribe makes a subscription of its own for each topic. What is published from then on comes to it. Where the
// service is and how it lets us in, the keys of this package say, in an environment; an error is a *[config.Error]
// where one is missing or wrong. Close deletes them; one that could not be deleted Pub/Sub forgets after a day.
func Subscribe(ctx context.Context, environ []string, insecure bool, topics ...string) (*Subscriptions, error) {
	set := config.Set{Prefix: "POSTHASTE_", Keys: keys(), Check: func(values *config.Values) []config.Problem {
		return check(values, insecure)
	}}
	values, err := set.Load(nil, environ)
	if err != nil {
		return nil, err
	}
	dial, err := clientOptions(ctx, values, daemon.Options{
		Insecure: insecure, UserAgent: "posthaste-outboxctl", Logger: slog.New(slog.DiscardHandler),
	}, answerTimeout)
	if err != nil {
		return nil, err
	}
	client, err := pubsub.NewClient(context.WithoutCancel(ctx), project.Get(values), dial...)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	s := &Subscriptions{client: client, names: map[string]string{}}
	for _, topic := range topics {
		if s.names[topic] != "" { // a second one would never be deleted
			continue
		}
		name, err := subscribe(ctx, client, project.Get(values), topic)
		if err != nil {
			return nil, errors.Join(err, s.Close()) //nolint:contextcheck // also after an interrupt
		}
		s.names[topic] = name
	}
	return s, nil
}

// Close deletes the subscriptions.
func (s *Subscriptions) Close() error {
	var problems []error
	for _, name := range s.names {
		problems = append(problems, unsubscribe(context.Background(), s.client, name))
	}
	return errors.Join(append(problems, s.client.Close())...)
}

// Receive hands over what comes, one message at a time and in order per key, until the context ends. Pub/Sub may
// deliver a message more than once.
func (s *Subscriptions) Receive(ctx context.Context, each func(Received)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var turn sync.Mutex
	var receivers sync.WaitGroup
	for topic, name := range s.names {
		receivers.Go(func() {
			err := s.client.Subscriber(name).Receive(ctx, func(_ context.Context, message *pubsub.Message) {
				turn.Lock()
				defer turn.Unlock()
				message.Ack()
				if ctx.Err() != nil {
					return
				}
				each(Received{
					ID: message.ID, Topic: topic, At: message.PublishTime, Attributes: message.Attributes, Body: message.Data,
				})
			})
			if err != nil && ctx.Err() == nil {
				stop(fmt.Errorf("%w: %w", errReceive, err))
			}
		})
	}
	receivers.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errReceive) {
		return cause
	}
	return nil
}

// errReceive is why a receiver ended that nobody stopped.
var errReceive = errors.New("receive")
