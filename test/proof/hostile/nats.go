package hostile

import (
	"context"
	"fmt"
	"math"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/publish"
)

// What the server takes: its max_payload, and the 16 bits that a stream has for the length of the headers.
const (
	natsMaxPayload = 1 << 20
	natsMaxHeaders = math.MaxUint16
)

// natsTakes tells whether the server takes a message of this size.
func natsTakes(e event) bool {
	block := len("NATS/1.0\r\n") + len("\r\n")
	add := func(name, value string) { block += len(name) + len(": ") + len(value) + len("\r\n") }
	add("Nats-Msg-Id", e.id.String())
	add("created_at", "2026-01-01T00:00:00.000000Z")
	add("outbox_seq", "1234")
	for name, value := range e.attributes {
		add(name, value)
	}
	return block <= natsMaxHeaders && block+e.size <= natsMaxPayload
}

// connectNATS makes a stream, reads it, and returns the publisher that we ship.
func (o *outlet) connectNATS(ctx context.Context, servers Servers) (publish.Publisher, error) {
	reading, err := nats.Connect(servers.NATSURL, nats.Timeout(hung))
	if err != nil {
		return nil, fmt.Errorf("hostile: NATS: %w (is it running? `make services` starts it)", err)
	}
	o.closers = append(o.closers, func(context.Context) error { reading.Close(); return nil })
	js, err := jetstream.New(reading, jetstream.WithDefaultTimeout(hung))
	if err != nil {
		return nil, fmt.Errorf("hostile: NATS: %w", err)
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: o.topic, Subjects: []string{o.topic}})
	if err != nil {
		return nil, fmt.Errorf("hostile: NATS: %w", err)
	}
	o.closers = append(o.closers, func(ctx context.Context) error { return js.DeleteStream(ctx, o.topic) })
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, fmt.Errorf("hostile: NATS: %w", err)
	}
	consuming, err := consumer.Consume(func(message jetstream.Msg) {
		if meta, err := message.Metadata(); err == nil {
			o.arrivals.add(meta.Timestamp, message.Data(), natsjetstream.Attributes(message.Headers()))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("hostile: NATS: %w", err)
	}
	o.closers = append(o.closers, func(context.Context) error { consuming.Stop(); <-consuming.Closed(); return nil })
	conn, err := natsjetstream.Connect(servers.NATSURL)
	if err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{Stream: o.topic})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("hostile: %w", err)
	}
	o.closers = append(o.closers, func(context.Context) error { return publisher.Close() })
	return publisher, nil
}
