package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/outbox"
)

// brokers are those that can be listened to, with the variable that says where each is.
var brokers = map[string]string{"nats": "POSTHASTE_NATS_URL", "pubsub": "POSTHASTE_PUBSUB_PROJECT"}

// listenCommand prints what arrives at the broker.
type listenCommand struct {
	root  *rootCommand
	topic string
	// broker is nats or pubsub; empty: the one that the environment names.
	broker string
	count  int
	since  time.Duration
}

func newListen(root *rootCommand) *cobra.Command {
	c := &listenCommand{root: root}
	cmd := &cobra.Command{
		Use:   "listen TOPIC",
		Short: "Print what arrives at a topic of the broker, as it comes",
		Long: `Print what arrives at a topic of the broker, as it comes, until Ctrl-C or --count.

The broker is found as outbox-publisher finds it: by POSTHASTE_NATS_URL or POSTHASTE_PUBSUB_PROJECT and the other
variables of its configuration, with the same rule of TLS. Listening takes nothing away from anybody. At NATS it is a
consumer of its own, which the server forgets. At Pub/Sub it is a subscription of its own, which is deleted in the end:
that needs the right to make one, and shows what comes from then on.`,
		Example: `  outboxctl listen orders
  outboxctl listen orders --since 1h --count 10
  outboxctl listen 'shop.>' -o ndjson | jq .data
  outboxctl listen domain-events --broker pubsub`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("listen takes one topic, got %d arguments", len(args))
			}
			c.topic = args[0]
			return nil
		},
	}
	cmd.Flags().StringVar(&c.broker, "broker", "", "nats or pubsub (default: the one that the environment names)")
	cmd.Flags().IntVar(&c.count, "count", 0, "end after so many events (default: never)")
	cmd.Flags().DurationVar(&c.since, "since", 0, "begin with what arrived so long ago, at NATS (default: from now on)")
	return root.show(cmd, c.run)
}

func (c *listenCommand) run(ctx context.Context, p *present.Printer) error {
	listen, err := c.chosen()
	if err != nil {
		return err
	}
	printed := 0
	var printing error
	err = listen(ctx, func() {
		_, _ = fmt.Fprintf(c.root.warn, "listening to %s; Ctrl-C ends it\n", c.topic)
	}, func(event dev.Delivered) (more bool) {
		printing = p.Stream(event, func() string { return eventLine(p, c.root.width(), event) })
		printed++
		return printing == nil && (c.count == 0 || printed < c.count)
	})
	if invalid := (*config.Error)(nil); errors.As(err, &invalid) {
		return usageError{"the broker: " + err.Error()}
	}
	return errors.Join(printing, err)
}

// chosen is the broker that the flag or the environment names.
func (c *listenCommand) chosen() (func(context.Context, func(), func(dev.Delivered) bool) error, error) {
	name, err := c.named()
	if err != nil {
		return nil, err
	}
	if name == "nats" {
		return c.nats, nil
	}
	return c.pubsub, nil
}

// named is its name.
func (c *listenCommand) named() (string, error) {
	name := cmp.Or(c.broker, c.root.getenv("POSTHASTE_BROKER"))
	if name == "" {
		var given []string
		for broker, variable := range brokers {
			if c.root.getenv(variable) != "" || c.root.getenv(variable+"_FILE") != "" {
				given = append(given, broker)
			}
		}
		switch len(given) {
		case 0:
			return "", usageError{"no broker is given: set POSTHASTE_NATS_URL, for instance to nats://127.0.0.1:4222, or " +
				"POSTHASTE_PUBSUB_PROJECT"}
		case 1:
			name = given[0]
		default:
			return "", usageError{"two brokers are given: name one with --broker nats or --broker pubsub"}
		}
	}
	if brokers[name] == "" {
		return "", usageError{fmt.Sprintf("there is no broker %.40q: it is nats or pubsub", name)}
	}
	return name, nil
}

// environ are the variables of these names that are set.
func (c *listenCommand) environ(names []string) (environ []string) {
	for _, name := range names {
		if value := c.root.getenv(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// insecure tells whether a broker may be reached in plain text.
func (c *listenCommand) insecure(broker string) bool {
	allowed := append(strings.Split(c.root.getenv("POSTHASTE_INSECURE_ALLOW"), ","), c.root.insecureAllow...)
	return slices.ContainsFunc(allowed, func(name string) bool { return strings.TrimSpace(name) == broker })
}

// received is a message as people see it. One that is not a relay's is shown as far as it can be.
func received(topic string, at time.Time, attributes map[string]string, body []byte) dev.Delivered {
	event := dev.Delivered{
		At: at, Topic: topic, Type: attributes["event_type"], Namespace: attributes["namespace"],
		Aggregate: attributes["aggregate_type"] + "/" + attributes["aggregate_id"], Tenant: attributes["tenant_id"],
	}
	event.ID, _ = outbox.ParseID(attributes["event_id"]) // zero: it has none
	if created, err := time.Parse(time.RFC3339, attributes["created_at"]); err == nil {
		event.LatencyMillis = max(0, float64(at.Sub(created).Microseconds())/1000)
	}
	if envelope, err := outbox.DecodeEnvelope(body); err == nil {
		event.Data = envelope.Data
	} else if event.Data = body; !json.Valid(event.Data) {
		event.Data, _ = json.Marshal(string(body)) // a text can be encoded
	}
	return event
}
