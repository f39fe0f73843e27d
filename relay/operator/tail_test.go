package operator_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestTailMovesAlong: each look goes ten minutes further back than the one before began, by the database's clock.
func TestTailMovesAlong(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		clock := func() (now time.Time) {
			if err := e.admin.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now); err != nil {
				t.Fatal(err)
			}
			return now
		}
		tail := e.operator.Tail(operator.Filter{})
		for look := range 3 {
			before := clock()
			if _, _, err := tail.Next(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			if at := tail.Since().Add(10 * time.Minute); at.Before(before) || at.After(clock()) {
				t.Errorf("look %d: the next begins at %s, and this one began at %s", look, at, before)
			}
		}
	})
}

// TestTailShowsWhatCommitsLateBehindMany: more than a page of events was shown since the late one drew its number. It
// is shown, or left says that something is not.
func TestTailShowsWhatCommitsLateBehindMany(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		writer, _ := e.begin(insertEvent, outbox.NewID().String(), "late")
		tail := e.operator.Tail(operator.Filter{})
		if _, _, err := tail.Next(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		for range 2 { // each of a look
			e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
				SELECT u.id, 'order_created', 'order', 'early', json_build_object('eventId', u.id)
				FROM (SELECT {schema}.outbox_uuid7() AS id FROM generate_series(1, 600)) u`)
			if changes, left, err := tail.Next(t.Context(), 10); err != nil || left || len(changes) != 600 {
				t.Fatalf("%d events, left %t, %v", len(changes), left, err)
			}
		}
		if err := writer.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		changes, left, err := tail.Next(t.Context(), 10)
		if err != nil || !left && (len(changes) != 1 || changes[0].AggregateID != "late") {
			t.Errorf("an event committed late, and the tail shows %d events and left %t, %v", len(changes), left, err)
		}
	})
}

// TestTailDoesNotShowOldEventsAsNew: there are more than a look can see. They are old also when those before them go,
// and the newest of them are followed.
func TestTailDoesNotShowOldEventsAsNew(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
			SELECT u.id, 'order_created', 'order', 'old', json_build_object('eventId', u.id)
			FROM (SELECT {schema}.outbox_uuid7() AS id FROM generate_series(1, 5100)) u`)
		tail := e.operator.Tail(operator.Filter{States: []string{"ready"}})
		next := func(want int) []operator.Change {
			t.Helper()
			changes, left, err := tail.Next(t.Context(), 3)
			if err != nil || left || len(changes) != want {
				t.Fatalf("%d events, want %d, left %t, %v", len(changes), want, left, err)
			}
			return changes
		}
		next(3)
		next(0)
		e.exec(`UPDATE {schema}.outbox_events SET state = 6, published_at = now()
			WHERE id IN (SELECT id FROM {schema}.outbox_events ORDER BY id DESC LIMIT 50)`)
		for _, change := range next(50) {
			if change.Was != "ready" {
				t.Fatalf("it is not new: %+v", change)
			}
		}
	})
}
