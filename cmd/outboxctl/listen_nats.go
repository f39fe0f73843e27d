package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
)

// answerTimeout is how long the broker may take to answer.
const answerTimeout = 10 * time.Second

// natsVariables are the daemon's, for where NATS is and how it lets us in.
var natsVariables = []string{
	"POSTHASTE_NATS_URL", "POSTHASTE_NATS_URL_FILE", "POSTHASTE_NATS_STREAM", "POSTHASTE_NATS_CREDENTIALS_FILE",
	"POSTHASTE_NATS_CA_FILE", "POSTHASTE_NATS_CERT_FILE", "POSTHASTE_NATS_KEY_FILE",
}

// nats listens to a subject of NATS JetStream.
func (c *listenCommand) nats(ctx context.Context, ready func(), each func(dev.Delivered) bool) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	messages, err := c.messages(ctx, conn)
	if err != nil {
		return err
	}
	defer messages.Stop()
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	ready()
	for {
		message, err := messages.Next()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("listen to %s: %w", c.topic, err)
		}
		at := time.Now()
		if stored, err := message.Metadata(); err == nil {
			at = stored.Timestamp
		}
		if !each(received(message.Subject(), at, natsjetstream.Attributes(message.Headers()), message.Data())) {
			return nil
		}
	}
}

// connect connects to NATS and waits until it answers.
func (c *listenCommand) connect(ctx context.Context) (*nats.Conn, error) {
	conn, err := natsbroker.Connect(ctx, c.environ(natsVariables), c.insecure("nats"), slog.New(slog.DiscardHandler))
	if invalid := (*config.Error)(nil); errors.As(err, &invalid) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("NATS: %w", err)
	}
	answered, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := conn.FlushWithContext(answered); err != nil {
		if last := conn.LastError(); last != nil {
			err = last
		}
		conn.Close()
		return nil, problem{
			code: "broker_not_connected", exit: exitFailed, err: fmt.Errorf("NATS does not answer: %w", err),
			hint: "is it up, and does POSTHASTE_NATS_URL lead to it?",
		}
	}
	return conn, nil
}

// messages begins to listen.
func (c *listenCommand) messages(ctx context.Context, conn *nats.Conn) (jetstream.MessagesContext, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("JetStream: %w", err)
	}
	asked, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	stream := c.root.getenv("POSTHASTE_NATS_STREAM")
	if stream == "" {
		stream, err = js.StreamNameBySubject(asked, c.topic)
	}
	settings := jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{c.topic}, DeliverPolicy: jetstream.DeliverNewPolicy,
	}
	if c.since > 0 {
		start := time.Now().Add(-c.since)
		settings.DeliverPolicy, settings.OptStartTime = jetstream.DeliverByStartTimePolicy, &start
	}
	var consumer jetstream.Consumer
	if err == nil {
		consumer, err = js.OrderedConsumer(asked, stream, settings)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, noStream(c.topic)
	}
	if err != nil {
		return nil, fmt.Errorf("listen to %s: %w", c.topic, err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, fmt.Errorf("listen to %s: %w", c.topic, err)
	}
	return messages, nil
}

// noStream says what to do about a subject that nobody stores.
func noStream(topic string) error {
	return problem{
		code: "no_stream", exit: exitNotFound, err: fmt.Errorf("no stream of NATS has the subject %s", topic),
		hint: fmt.Sprintf("add one, for instance 'nats stream add events --subjects %s --storage file --defaults'", topic),
	}
}
