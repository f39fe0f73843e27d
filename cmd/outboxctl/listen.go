package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
	"github.com/posthaste-dev/posthaste/outbox"
)

// answerTimeout is how long the broker may take to answer.
const answerTimeout = 10 * time.Second

// natsVariables are the daemon's, for where NATS is and how it lets us in.
var natsVariables = []string{
	"POSTHASTE_NATS_URL", "POSTHASTE_NATS_URL_FILE", "POSTHASTE_NATS_STREAM", "POSTHASTE_NATS_CREDENTIALS_FILE",
	"POSTHASTE_NATS_CA_FILE", "POSTHASTE_NATS_CERT_FILE", "POSTHASTE_NATS_KEY_FILE",
}

// listenCommand prints what arrives at the broker.
type listenCommand struct {
	root  *rootCommand
	topic string
	count int
	since time.Duration
}

func newListen(root *rootCommand) *cobra.Command {
	c := &listenCommand{root: root}
	cmd := &cobra.Command{
		Use:   "listen TOPIC",
		Short: "Print what arrives at a topic of the broker, as it comes",
		Long: `Print what arrives at a topic of the broker, as it comes, until Ctrl-C or --count.

The broker is NATS JetStream, found as outbox-publisher finds it: POSTHASTE_NATS_URL and the other variables of its
configuration, with the same rule of TLS. Listening takes nothing away from anybody: it is a consumer of its own, which
the server forgets.`,
		Example: `  outboxctl listen orders
  outboxctl listen orders --since 1h --count 10
  outboxctl listen 'shop.>' -o ndjson | jq .data`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("listen takes one topic, got %d arguments", len(args))
			}
			c.topic = args[0]
			return nil
		},
	}
	cmd.Flags().IntVar(&c.count, "count", 0, "end after so many events (default: never)")
	cmd.Flags().DurationVar(&c.since, "since", 0, "begin with what arrived so long ago (default: what comes from now on)")
	return root.show(cmd, c.run)
}

func (c *listenCommand) run(ctx context.Context, p *present.Printer) error {
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
	_, _ = fmt.Fprintf(c.root.warn, "listening to %s; Ctrl-C ends it\n", c.topic)
	for printed := 0; c.count == 0 || printed < c.count; printed++ {
		message, err := messages.Next()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("listen to %s: %w", c.topic, err)
		}
		event := received(message)
		if err := p.Stream(event, func() string { return eventLine(p, c.root.width(), event) }); err != nil {
			return err
		}
	}
	return nil
}

// connect connects to NATS and waits until it answers.
func (c *listenCommand) connect(ctx context.Context) (*nats.Conn, error) {
	var environ []string
	for _, name := range natsVariables {
		if value := c.root.getenv(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	if c.root.getenv("POSTHASTE_NATS_URL") == "" && c.root.getenv("POSTHASTE_NATS_URL_FILE") == "" {
		return nil, usageError{"no broker is given: set POSTHASTE_NATS_URL, for instance to nats://127.0.0.1:4222"}
	}
	allowed := append(strings.Split(c.root.getenv("POSTHASTE_INSECURE_ALLOW"), ","), c.root.insecureAllow...)
	insecure := slices.ContainsFunc(allowed, func(name string) bool { return strings.TrimSpace(name) == "nats" })
	conn, err := natsbroker.Connect(ctx, environ, insecure, slog.New(slog.DiscardHandler))
	if invalid := (*config.Error)(nil); errors.As(err, &invalid) {
		return nil, usageError{"the broker: " + err.Error()}
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
		return nil, problem{
			code: "no_stream", exit: exitNotFound, err: fmt.Errorf("no stream of NATS has the subject %s", c.topic),
			hint: fmt.Sprintf("add one, for instance 'nats stream add events --subjects %s --storage file --defaults'", c.topic),
		}
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

// received is a message as people see it. One that is not a relay's is shown as far as it can be.
func received(message jetstream.Msg) dev.Delivered {
	attributes := natsjetstream.Attributes(message.Headers())
	event := dev.Delivered{
		At: time.Now(), Topic: message.Subject(), Type: attributes["event_type"], Namespace: attributes["namespace"],
		Aggregate: attributes["aggregate_type"] + "/" + attributes["aggregate_id"], Tenant: attributes["tenant_id"],
	}
	event.ID, _ = outbox.ParseID(attributes["event_id"]) // zero: it has none
	if stored, err := message.Metadata(); err == nil {
		event.At = stored.Timestamp
	}
	if created, err := time.Parse(time.RFC3339, attributes["created_at"]); err == nil {
		event.LatencyMillis = max(0, float64(event.At.Sub(created).Microseconds())/1000)
	}
	if envelope, err := outbox.DecodeEnvelope(message.Data()); err == nil {
		event.Data = envelope.Data
	} else if event.Data = message.Data(); !json.Valid(event.Data) {
		event.Data, _ = json.Marshal(string(message.Data())) // a text can be encoded
	}
	return event
}
