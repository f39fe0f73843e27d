// Package brokers connects the marketplace's consumers to the broker that a deployment has chosen.
package brokers

import (
	"context"
	"errors"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
)

// A Broker is where events come from.
type Broker interface {
	// Prepare makes the topics, and what the consumers read them by. What is there already stays as it is.
	Prepare(ctx context.Context, consumers ...*consumer.Consumer) error
	// Run has a consumer handle events until ctx ends.
	Run(ctx context.Context, c *consumer.Consumer) error
	// Watch shows what comes to a topic from when begin is called, until see returns true or ctx ends. It takes nothing
	// away from consumers.
	Watch(ctx context.Context, topic string, begin func() error, see func(Message) (enough bool)) error
	// Ready says why nothing could be received now.
	Ready(ctx context.Context) error
	// Close hangs up.
	Close() error
}

// A Message is what a broker has of an event.
type Message struct {
	Attributes map[string]string
	Body       []byte
}

// Open opens the broker of the settings. It does not wait for it: one that is away comes back.
func Open(ctx context.Context, values *config.Values) (Broker, error) {
	if settings.Broker.Get(values) == "nats" {
		return openNATS(values)
	}
	return openPubSub(ctx, values)
}

// topics are the names of all topics.
func topics(values *config.Values) []string {
	names := settings.Topics(values)
	return []string{names.Domain, names.Analytics, names.Notifications, names.Billing, settings.DeadLetters(values)}
}

var errNotConnected = errors.New("not connected")
