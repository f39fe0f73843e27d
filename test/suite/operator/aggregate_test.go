package operator

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
)

// TestAggregateSaysWhatItHides: what waits is not called published, because it is not shown.
func TestAggregateSaysWhatItHides(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		var events []outbox.Event
		for range 630 {
			events = append(events, shipped.New("1", order{}))
		}
		ids := e.emit(t, events...)
		e.Exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now() WHERE seq <= 30")
		e.move(t, ids[30], int(state.DeadBlocking))
		e.Exec(t, "UPDATE {schema}.outbox_events SET state = 1 WHERE seq > 31")
		e.Exec(t, `INSERT INTO {schema}.outbox_held (lane, seq, kind, namespace, event_type, aggregate_type, aggregate_id)
			SELECT lane, seq, 3, namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_events
			WHERE seq > 31`)
		found, err := e.viewer.Aggregate(t.Context(), "order", "1", 0)
		if err != nil {
			t.Fatal(err)
		}
		if open, over := found.Hidden(); len(found.Events) != 120 || open != 480 || over != 30 || found.Open != 600 ||
			found.Looked != 630 || !found.Complete || len(found.Heads) != 1 || found.Heads[0].ID != ids[30] {
			t.Errorf("%d events, hidden %d and %d, looked at %d, %d are open, complete: %t, heads %+v", len(found.Events), open,
				over, found.Looked, found.Open, found.Complete, found.Heads)
		}
		_, _, stderr := e.call(t, e.role, "aggregate", "show", "order/1")
		if !strings.Contains(stderr, "480 more that are open are not shown") ||
			!strings.Contains(stderr, "30 older ones that are published or discarded are not shown") {
			t.Errorf("it says %s", stderr)
		}
	})
}

// TestAggregateWithMoreThanIsLookedAt: the newest and what is held are found among more events than are looked at.
func TestAggregateWithMoreThanIsLookedAt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		e.Exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state,
				published_at)
			SELECT u.id, 'order_shipped', 'order', '1', json_build_object('eventId', u.id), 6, now()
			FROM (SELECT {schema}.outbox_uuid7() AS id FROM generate_series(1, 21000)) u`)
		ids := e.emit(t, placed.New("1", order{}), shipped.New("1", order{}), shipped.New("1", order{}))
		e.move(t, ids[0], int(state.Retrying))
		e.move(t, ids[1], int(state.Waiting))
		found, err := e.viewer.Aggregate(t.Context(), "order", "1", 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Events) != 3 || found.Events[2].ID != ids[2] || found.Open != 3 || found.Complete ||
			len(found.Heads) != 1 || found.Heads[0].ID != ids[0] {
			t.Errorf("%+v", found)
		}
	})
}
