package operator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// inNamespace writes an event of an aggregate in another namespace.
func (e *env) inNamespace(namespace, aggregate string) outbox.ID {
	e.t.Helper()
	id := outbox.NewID()
	e.exec(`INSERT INTO {schema}.outbox_events (id, namespace, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES ($1::text::uuid, $2, 'order_created', 'order', $3, json_build_object('eventId', $1::text))`,
		id.String(), namespace, aggregate)
	return id
}

// TestNeighbors of an aggregate: those of others, and of the same one in another namespace, are none.
func TestNeighbors(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		first := e.event("1", "order_created", state.Published)
		e.event("2", "order_created", state.Published)
		e.inNamespace("other", "1")
		second := e.event("1", "order_shipped", state.DeadBlocking)
		third := e.event("1", "order_created", state.Waiting)
		alone := e.inNamespace("alone", "1")
		want := map[outbox.ID][2]outbox.ID{
			first: {{}, second}, second: {first, third}, third: {second, {}}, alone: {{}, {}},
		}
		check := func(how string, complete func(want [2]outbox.ID) bool) {
			t.Helper()
			for id, near := range want {
				found, err := e.operator.Neighbors(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				for i, event := range []*operator.Event{found.Before, found.After} {
					if near[i] == (outbox.ID{}) && event != nil || near[i] != (outbox.ID{}) && (event == nil || event.ID != near[i]) {
						t.Errorf("%s: of %s: got %+v, want %s", how, id, event, near)
					}
				}
				if found.Complete != complete(near) {
					t.Errorf("%s: of %s: complete is %t", how, id, found.Complete)
				}
			}
		}
		check("all were looked at", func([2]outbox.ID) bool { return true })
		found, err := e.operator.Neighbors(t.Context(), second)
		if err != nil || found.Before.State != "published" || found.After.State != "waiting" ||
			found.Before.AggregateID != "1" || found.After.Type != "order_created" {
			t.Errorf("%+v, %v", found, err)
		}
		// Of a large one those that are near are found all the same, and one that is not is not said to be none.
		e.operator.SetWindow(4)
		check("what is near", func(want [2]outbox.ID) bool { return want[0] != (outbox.ID{}) && want[1] != (outbox.ID{}) })
		if _, err := e.operator.Neighbors(t.Context(), outbox.NewID()); !errors.Is(err, operator.ErrNoEvent) {
			t.Errorf("an event that is not there: %v", err)
		}
	})
}

// TestNeighborsHaveTheirIndexes, whatever the statistics say.
func TestNeighborsHaveTheirIndexes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec("ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = off)")
		id := e.event("1", "order_created", state.Published)
		e.exec(`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, state, published_at,
				payload_json)
			SELECT i % 64 + 1, gen_random_uuid(), 'type', 'order', (i % 500)::text, 6, now(), '{}'
			FROM generate_series(1, 5000) i`)
		for _, statistics := range []string{"stale", "fresh"} {
			if statistics == "fresh" {
				e.exec("ANALYZE {schema}.outbox_events")
			}
			plan, err := e.operator.PlanOfNeighbors(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for index, times := range map[string]int{
				"Seq Scan on outbox_events": 0, "outbox_events_id": 1, "outbox_events_aggregate": 1,
				"using outbox_events_pkey": 2,
			} {
				if strings.Count(plan, index) != times {
					t.Errorf("%s statistics: %q is not there %d times:\n%s", statistics, index, times, plan)
				}
			}
		}
	})
}
