package operator_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
)

// TestTopicsAreNotGuessed: relays say where an open event goes. Of one that is over they do not know: since then its
// type may have moved.
func TestTopicsAreNotGuessed(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		want := map[outbox.ID]string{
			e.event("1", "order_created", state.Published): "", e.event("1", "order_created", state.Discarded): "",
			e.event("1", "order_created", state.Ready): "now", e.event("1", "order_created", state.Parked): "now",
		}
		for _, is := range []state.State{state.Dead, state.DeadBlocking} {
			id := e.event("1", "order_created", is)
			want[id] = "then"
			e.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace,
				event_type, aggregate_type, aggregate_id, topic, error_reason, payload_json)
				SELECT seq, id, created_at, 3, true, namespace, event_type, aggregate_type, aggregate_id, 'then', 'rejected',
				payload_json FROM {schema}.outbox_events WHERE id = $1`, id.String())
		}
		e.knows("main", map[string]string{"order_created": "now"})
		found, err := e.operator.Aggregate(t.Context(), "order", "1", 0)
		if err != nil || len(found.Events) != len(want) {
			t.Fatalf("%v: %+v", err, found)
		}
		for _, event := range found.Events {
			if event.Topic != want[event.ID] {
				t.Errorf("an event that is %s has the topic %q, want %q", event.State, event.Topic, want[event.ID])
			}
		}
	})
}
