package telemetry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestMinutes: what a relay did for its topics is in the table when it has stopped, and in none of it is more than
// happened. A relay that does nothing writes nothing; what is older than 72 hours goes.
func TestMinutes(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		placed := outbox.Define[note](outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: "orders"})
		billed := outbox.Define[note](outbox.Contract{
			Type: "order_billed", Aggregate: "order", Topic: "bills", MaxAttempts: 2,
		})
		registry, err := outbox.NewRegistry(placed, billed)
		if err != nil {
			t.Fatal(err)
		}
		run := func(until string) {
			made, err := relay.New(relay.Config{
				Database: db.URL, Schema: db.Schema, Registry: registry, SurveyEvery: time.Second,
				Publisher: publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
					if message.Topic == "bills" {
						return &publish.RejectedError{Err: errors.New("no bills today")}
					}
					return nil
				}),
				Settings: relay.Settings{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond, Poll: 50 * time.Millisecond},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- made.Run(ctx) }()
			eventually.True(t, until, func() bool { return db.Count(t, until) == 1 })
			stop()
			if err := eventually.Receive(t, "the relay has stopped", ended); err != nil {
				t.Error(err)
			}
		}
		const old = `INSERT INTO {schema}.outbox_minutes
			SELECT now() - interval '73 hours', 'orders', gen_random_uuid(), 1, 1, 0, 0, 0, 0, 0,
				array_fill(0::bigint, '{16}'), 0, 0`
		db.Exec(t, old)
		run("SELECT count(*) FROM {schema}.outbox_relays WHERE cardinality(lanes) = 64")
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_minutes"); n != 1 {
			t.Errorf("%d rows after a relay that did nothing", n)
		}
		events := []outbox.Event{billed.New("1", note{})}
		for n := range 20 {
			events = append(events, placed.New(fmt.Sprint(n), note{N: n}))
		}
		if err := outbox.InTx(t.Context(), db.Pool, func(ctx context.Context, tx pgx.Tx) error {
			_, err := outbox.Emit(ctx, outbox.InSchema(tx, db.Schema), events...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		run("SELECT count(*) FROM {schema}.outbox_events WHERE state = 5 AND " +
			"20 = (SELECT count(*) FROM {schema}.outbox_events WHERE state = 6)")
		for topic, want := range map[string]string{
			"orders": "20,20,0,0,0,0,0,20,t", "bills": "1,0,2,0,0,0,1,0,t",
		} {
			var got string
			if err := db.Pool.QueryRow(t.Context(), db.SQL(`SELECT concat_ws(',', sum(arrived), sum(published),
				sum(rejected), sum(terminal), sum(topic_fault), sum(unknown), sum(died),
				sum((SELECT sum(n) FROM unnest(latencies) n)),
				bool_and(minute > now() - interval '1 hour' AND minute = date_trunc('minute', minute)))
				FROM {schema}.outbox_minutes WHERE topic = $1`), topic).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s, want %s (%v)", topic, got, want, err)
			}
		}
		const rejected = "SELECT count(*) FROM {schema}.outbox_attempts WHERE class = 'rejected' AND topic = 'bills'"
		if n := db.Count(t, rejected); n != 2 {
			t.Errorf("%d attempts are told of, want 2", n)
		}
	})
}
