package operator_test

import (
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// joins adds a relay with lanes from first to last that is alive for so long, and returns its id.
func (e *env) joins(name, alive string, first, last int) string {
	e.t.Helper()
	id := outbox.NewID().String()
	e.exec(`INSERT INTO {schema}.outbox_relays (id, token, name, version, lanes)
		VALUES ($1::text::uuid, gen_random_uuid(), $2, 'v1', ARRAY(SELECT generate_series($3::int, $4::int))::smallint[])`,
		id, name, first, last)
	e.exec(`INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors, swept, recovered)
		VALUES ($1::text::uuid, 1, clock_timestamp() - interval '1 hour', '{}', '{}', '{}', '{}'),
		($1::text::uuid, 2, clock_timestamp() + $2::text::interval, ARRAY[$3]::smallint[], '{7}', '{0}', '{t}')`,
		id, alive, first)
	e.exec(`UPDATE {schema}.outbox_lanes SET owner = $1::text::uuid, token = gen_random_uuid(),
		acquired_at = clock_timestamp() WHERE lane BETWEEN $2 AND $3`, id, first, last)
	return id
}

// TestLanes: who holds what, also if that one has died; what its owner said last counts.
func TestLanes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		alive, dead := e.joins("a", "1 hour", 1, 3), e.joins("b", "-1 minute", 4, 5)
		event := e.event("1", "order_created", 0)
		lanes, err := e.operator.Lanes(t.Context())
		if err != nil || len(lanes) != 64 {
			t.Fatalf("%d lanes, %v", len(lanes), err)
		}
		for i, lane := range lanes {
			owner, held := "", false
			switch {
			case i < 3:
				owner, held = alive, true
			case i < 5:
				owner = dead
			}
			if lane.Number != i+1 || lane.Relay != owner || lane.Held != held || lane.AcquiredAt.IsZero() != (owner == "") {
				t.Errorf("got %+v", lane)
			}
		}
		if lanes[0].Floor != 7 || lanes[0].RelayName != "a" {
			t.Errorf("got %+v", lanes[0])
		}
		newest := e.one("SELECT lane::text FROM {schema}.outbox_events WHERE id = $1", event.String())
		at := slices.IndexFunc(lanes, func(l operator.Lane) bool { return l.Newest > 0 })
		if at < 0 || e.one("SELECT $1::int::text", at+1) != newest {
			t.Errorf("lane %d has the newest event, want %s", at+1, newest)
		}
	})
}

// TestRelays: alive by the newest beat, and those that ended only where they are asked for.
func TestRelays(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		alive := e.joins("a", "1 hour", 1, 3)
		e.joins("b", "-1 minute", 4, 5)
		gone := e.joins("c", "1 hour", 6, 6)
		e.exec("UPDATE {schema}.outbox_relays SET ended_at = clock_timestamp(), lanes = '{}' WHERE id = $1::text::uuid", gone)
		e.exec("INSERT INTO {schema}.outbox_known VALUES ($1::text::uuid, 'order_created', 'orders')", alive)
		e.exec("INSERT INTO {schema}.outbox_topics (relay, topic, paused) VALUES ($1::text::uuid, 'orders', true)", alive)
		for _, ended := range []bool{false, true} {
			relays, err := e.operator.Relays(t.Context(), ended)
			if err != nil {
				t.Fatal(err)
			}
			var states []string
			for _, relay := range relays {
				states = append(states, relay.Name+" "+string(relay.State)+" "+operator.Ranges(relay.Lanes))
			}
			want := []string{"b dead 4-5", "a alive 1-3"}
			if ended {
				want = append(want, "c ended ")
			}
			if !slices.Equal(states, want) {
				t.Errorf("got %q, want %q", states, want)
			}
			if a := relays[1]; a.ID != alive || a.Types != 1 || a.Version != "v1" || !slices.Equal(a.FailingTopics,
				[]string{"orders"}) || a.BeatAt.IsZero() {
				t.Errorf("got %+v", a)
			}
		}
	})
}

// TestTopics: types by topic, with who knows them, who has paused what, and why.
func TestTopics(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		a, b := e.joins("a", "1 hour", 1, 3), e.joins("b", "-1 minute", 4, 5)
		for _, relay := range []string{a, b} {
			e.exec("INSERT INTO {schema}.outbox_known VALUES ($1::text::uuid, 'order_created', 'orders')", relay)
		}
		e.exec(`INSERT INTO {schema}.outbox_known VALUES ($1::text::uuid, 'order_paid', 'orders'),
			($1::text::uuid, 'mail', 'mails')`, a)
		// The words of an error are the broker's: they do not make it an operator's pause.
		e.exec(`INSERT INTO {schema}.outbox_topics (relay, topic, paused, by_operator, error) VALUES
			($1::text::uuid, 'mails', true, false, 'paused by its owner: no such topic'),
			($1::text::uuid, 'orders', false, false, ''), ($1::text::uuid, 'other', true, true, 'no such topic')`, a)
		for _, scope := range []operator.Scope{operator.TypeScope("order_paid"), operator.TopicScope("other")} {
			if _, err := e.operator.Pause(t.Context(), action(), scope); err != nil {
				t.Fatal(err)
			}
		}
		relays, err := e.operator.Relays(t.Context(), false)
		if err != nil || !slices.ContainsFunc(relays, func(r operator.Relay) bool {
			return r.ID == a && slices.Equal(r.FailingTopics, []string{"mails"})
		}) {
			t.Errorf("got %+v, %v", relays, err)
		}
		topics, err := e.operator.Topics(t.Context())
		if err != nil || len(topics) != 3 {
			t.Fatalf("got %+v, %v", topics, err)
		}
		mails, orders, other := topics[0], topics[1], topics[2]
		if other.Name != "other" || len(other.Types) != 0 || len(other.Paused) != 1 || len(other.Failing) != 0 {
			t.Errorf("got %+v", other)
		}
		if len(mails.Failing) != 1 || mails.Failing[0].Error != "paused by its owner: no such topic" ||
			mails.Failing[0].RelayName != "a" ||
			len(mails.Paused) != 0 {
			t.Errorf("got %+v", mails)
		}
		if len(orders.Types) != 2 || orders.Types[0].Alive != 1 || !slices.Equal(orders.Types[0].Relays, []string{
			"a",
			"b",
		}) ||
			len(orders.Failing) != 0 || len(orders.Paused) != 1 || orders.Paused[0].Actor != "ann" {
			t.Errorf("got %+v", orders)
		}
	})
}

func TestRanges(t *testing.T) {
	t.Parallel()
	for want, lanes := range map[string][]int16{"": nil, "3": {3}, "1-3, 7": {7, 2, 1, 3}, "1, 3, 5-6": {1, 3, 5, 6}} {
		if got := operator.Ranges(lanes); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
