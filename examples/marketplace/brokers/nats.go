package brokers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
)

// natsBroker is one stream with all topics as its subjects. Each consumer has a consumer of its name on the server, and
// they share the connection.
type natsBroker struct {
	values *config.Values
	conn   *nats.Conn
	js     jetstream.JetStream
}

func openNATS(values *config.Values) (*natsBroker, error) {
	connect := natsjetstream.Connect
	if settings.AllowsInsecure(values, "nats") {
		connect = natsjetstream.ConnectInsecure
	}
	conn, err := connect(settings.NATSURL.Get(values).Reveal())
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("nats: %w", err)
	}
	return &natsBroker{values: values, conn: conn, js: js}, nil
}

func (b *natsBroker) Prepare(ctx context.Context, consumers ...*consumer.Consumer) error {
	stream, err := b.stream(ctx)
	if err != nil {
		return err
	}
	for _, c := range consumers {
		_, err := stream.CreateConsumer(ctx, natsjetstream.PullConsumer(c, daemon.TopicDefault.Get(b.values)))
		if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) { // it exists, and somebody has changed it
			return fmt.Errorf("nats: make the consumer %s: %w", c.Name(), err)
		}
	}
	return nil
}

// stream makes the stream, or adds to one that is there the subjects that it lacks.
func (b *natsBroker) stream(ctx context.Context) (jetstream.Stream, error) {
	as := jetstream.StreamConfig{Name: settings.NATSStream.Get(b.values)}
	stream, err := b.js.Stream(ctx, as.Name)
	switch {
	case err == nil:
		as = stream.CachedInfo().Config
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("nats: look for the stream: %w", err)
	}
	for _, topic := range topics(b.values) {
		if !slices.Contains(as.Subjects, topic) {
			as.Subjects = append(as.Subjects, topic)
		}
	}
	if stream, err = b.js.CreateOrUpdateStream(ctx, as); err != nil {
		return nil, fmt.Errorf("nats: make the stream: %w", err)
	}
	return stream, nil
}

func (b *natsBroker) Run(ctx context.Context, c *consumer.Consumer) error {
	return natsjetstream.Consume(ctx, b.js, c, natsjetstream.ConsumeConfig{
		Stream: settings.NATSStream.Get(b.values), DeadLetters: settings.DeadLetters(b.values),
	})
}

func (b *natsBroker) Watch(ctx context.Context, topic string, begin func() error, see func(Message) bool) error {
	watching, err := b.js.OrderedConsumer(ctx, settings.NATSStream.Get(b.values), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{topic}, DeliverPolicy: jetstream.DeliverNewPolicy,
	})
	if err != nil {
		return fmt.Errorf("nats: watch %s: %w", topic, err)
	}
	messages, err := watching.Messages()
	if err != nil {
		return fmt.Errorf("nats: watch %s: %w", topic, err)
	}
	defer messages.Stop()
	if err := begin(); err != nil {
		return err
	}
	for {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("nats: watch %s: %w", topic, err)
		}
		attributes := map[string]string{}
		for name := range message.Headers() {
			attributes[name] = message.Headers().Get(name)
		}
		if see(Message{Attributes: attributes, Body: message.Data()}) {
			return nil
		}
	}
}

func (b *natsBroker) Ready(context.Context) error {
	if !b.conn.IsConnected() {
		return errNotConnected
	}
	return nil
}

func (b *natsBroker) Close() error {
	b.conn.Close()
	return nil
}
