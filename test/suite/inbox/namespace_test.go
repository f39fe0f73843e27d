package inbox_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	consuming "github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

type note struct{}

// Two aggregates with the same type and id, in two namespaces.
var (
	ordered  = outbox.Define[note](outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: "orders"})
	invoiced = outbox.Define[note](outbox.Contract{
		Type: "order_invoiced", Aggregate: "order", Topic: "orders", Namespace: "billing",
	})
)

// relayed emits events and returns the messages that a relay makes of them, in the order in which they were emitted.
func relayed(t *testing.T, db *pgtest.DB, events ...outbox.Event) []*publish.Message {
	t.Helper()
	migrate(t, db, schema.Outbox.Up, schema.Options{})
	sent := map[outbox.ID]*publish.Message{}
	arrived := make(chan *publish.Message, len(events))
	registry, err := outbox.NewRegistry(ordered, invoiced)
	if err != nil {
		t.Fatal(err)
	}
	relays, err := relay.New(relay.Config{
		Database: db.URL, Schema: db.Schema, Registry: registry, Logger: slog.New(slog.DiscardHandler),
		Publisher: publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
			arrived <- message
			return nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]outbox.ID, 0, len(events))
	for _, event := range events {
		tx := db.Begin(t)
		receipts, err := outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), event)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, receipts[0].ID)
		commit(t, tx)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relays.Run(ctx) }()
	for range events {
		message := eventually.Receive(t, "a message", arrived)
		sent[message.ID] = message
	}
	stop()
	if err := eventually.Receive(t, "the end of the relay", ended); err != nil {
		t.Fatal(err)
	}
	messages := make([]*publish.Message, 0, len(ids))
	for _, id := range ids {
		messages = append(messages, sent[id])
	}
	return messages
}

// An aggregate of another namespace is another aggregate: its events are not older or newer than those of this one.
func TestALateEventOfAnotherNamespaceIsNotOlder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		messages := relayed(t, db, ordered.New("7", note{}), invoiced.New("7", note{}))
		handle := func(ctx context.Context, event *consuming.Event, _ note) error {
			return outbox.InTx(ctx, db.Pool, func(ctx context.Context, tx pgx.Tx) error {
				newer, err := inbox.Newer(ctx, outbox.InSchema(tx, db.Schema), "read-model", event.Aggregate, event.Seq)
				if err != nil || !newer {
					return err
				}
				_, err = tx.Exec(ctx, db.SQL("INSERT INTO {schema}.effects (event_id) VALUES ($1)"), event.ID.String())
				return err
			})
		}
		c, err := consuming.New(consuming.Config{
			Name: "read-model", Deadline: time.Minute, Logger: slog.New(slog.DiscardHandler),
		},
			consuming.On(ordered, handle), consuming.On(invoiced, handle))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{1, 0, 0, 1} { // the first comes late, and both come twice
			if verdict := c.Process(t.Context(), messages[at].Attributes, messages[at].Body, 1); verdict.Outcome !=
				consuming.Handled {
				t.Fatalf("%s: %+v", messages[at].EventType, verdict)
			}
		}
		for _, message := range messages {
			if got := db.Count(t, "SELECT count(*) FROM {schema}.effects WHERE event_id = $1", message.ID.String()); got != 1 {
				t.Errorf("%s of the namespace %s has %d effects, want 1", message.EventType, message.Namespace, got)
			}
		}
	})
}
