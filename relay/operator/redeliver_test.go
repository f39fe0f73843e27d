package operator_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

func (e *env) wantRedelivered(a operator.Action, how operator.Redelivery, want string, events ...outbox.ID) {
	e.t.Helper()
	results, err := e.operator.Redeliver(e.t.Context(), a, how, events...)
	if err != nil {
		e.t.Fatal(err)
	}
	var got []string
	for i, result := range results {
		if result.Event != events[i] {
			e.t.Errorf("result %d is of %s, want %s", i, result.Event, events[i])
		}
		got = append(got, strings.TrimSpace(string(result.Outcome)+" "+result.Was))
	}
	if text := strings.Join(got, ", "); text != want {
		e.t.Errorf("redeliver: %s\nwant %s", text, want)
	}
}

func (e *env) wantCanceled(a operator.Action, of outbox.ID, want string) {
	e.t.Helper()
	canceled, left, err := e.operator.Cancel(e.t.Context(), a, of)
	if got := fmt.Sprintf("%d canceled, %d left", canceled, left); err != nil || got != want {
		e.t.Errorf("cancel: %s, %v, want %s", got, err, want)
	}
}

// TestRedeliver: published events alone, each once by an action, with a row of the log; the events stay as they are.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		one, two := e.event("1", "placed", state.Published), e.event("1", "placed", state.Published)
		ready, dead := e.event("1", "placed", state.Ready), e.event("2", "placed", state.DeadBlocking)
		discarded, waiting := e.event("3", "placed", state.Discarded), e.event("2", "placed", state.Waiting)
		before := e.one("SELECT string_agg(v::text, ' ' ORDER BY v.seq) FROM {schema}.outbox_events v")
		a := action()
		e.wantRedelivered(a, operator.Redelivery{}, "done published, not applicable ready, "+
			"not applicable dead and blocking, not applicable discarded, not applicable waiting, not found, done published",
			one, ready, dead, discarded, waiting, outbox.NewID(), one)
		e.wantRedelivered(a, operator.Redelivery{}, "done before published", one)
		e.wantRedelivered(action(), operator.Redelivery{Topic: "copies"}, "done published", two)
		e.wantRedelivered(action(), operator.Redelivery{}, "done published", one)
		e.wantRedelivered(action(), operator.Redelivery{}, "")
		const requests = `SELECT string_agg((event_seq - (SELECT min(seq) FROM {schema}.outbox_events)) || ' ' ||
			coalesce(topic, '-') || ' ' || (due_at <= clock_timestamp()) || ' ' || attempts || ' ' || taken, ', ' ORDER BY r.id)
			FROM {schema}.outbox_requests r JOIN {schema}.outbox_events e ON e.id = event_id AND e.lane = r.lane
			 AND e.seq = event_seq`
		if got := e.one(requests); got != "0 - true 0 0, 1 copies true 0 0, 0 - true 0 0" {
			t.Errorf("the requests are %s", got)
		}
		const log = "redeliver by ann: the topic is back"
		if got := e.actions(one) + " | " + e.actions(two) + " | " + e.actions(ready); got != log+"; "+log+" | "+log+" | " {
			t.Errorf("the log has %s", got)
		}
		if got := e.one("SELECT string_agg(v::text, ' ' ORDER BY v.seq) FROM {schema}.outbox_events v"); got != before {
			t.Error("the events have changed")
		}
		if _, err := e.operator.Redrive(t.Context(), a, dead); err == nil ||
			!strings.Contains(err.Error(), "used before, for a redeliver") {
			t.Errorf("the id of another decision: %v", err)
		}
		if _, err := e.operator.Redeliver(t.Context(), action(), operator.Redelivery{},
			make([]outbox.ID, operator.MaxEvents+1)...); err == nil || !strings.Contains(err.Error(), "10001 events") {
			t.Errorf("too many events: %v", err)
		}
		for want, how := range map[string]operator.Redelivery{
			"more than 255":     {Topic: strings.Repeat("x", 256)},
			"control character": {Topic: "a\nb"},
			"rate is -1":        {Rate: -1},
			"rate is NaN":       {Rate: math.NaN()},
			"rate is 2e+06":     {Rate: 2e6},
		} {
			if _, err := e.operator.Redeliver(t.Context(), action(), how, one); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", how, err)
			}
		}
	})
}

// TestARateIsOneBehindTheOther: so many per second, in the order of the numbers, whatever the order of the ids.
func TestARateIsOneBehindTheOther(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		var events []outbox.ID
		for range 5 {
			events = append(events, e.event("1", "placed", state.Published))
		}
		slices.Reverse(events)
		if _, err := e.operator.Redeliver(t.Context(), action(), operator.Redelivery{Rate: 0.01}, events...); err != nil {
			t.Fatal(err)
		}
		if got := e.one(`SELECT string_agg(round(extract(epoch FROM due_at - requested_at) / 100)::text, ' '
			ORDER BY event_seq)
			FROM {schema}.outbox_requests`); got != "0 1 2 3 4" {
			t.Errorf("due after %s hundred seconds", got)
		}
	})
}

// TestAPartIsDueBehindThePartBefore: else later events would be due before earlier ones, and twice as many per second.
func TestAPartIsDueBehindThePartBefore(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		a := action()
		for range 2 {
			var events []outbox.ID
			for range 3 {
				events = append(events, e.event("1", "placed", state.Published))
			}
			if _, err := e.operator.Redeliver(t.Context(), a, operator.Redelivery{Rate: 0.01}, events...); err != nil {
				t.Fatal(err)
			}
		}
		if got := e.one(`SELECT string_agg(round(extract(epoch FROM due_at - (SELECT min(due_at) FROM
			{schema}.outbox_requests)) / 100)::text, ' ' ORDER BY event_seq)
			FROM {schema}.outbox_requests`); got != "0 1 2 3 4 5" {
			t.Errorf("due after %s hundred seconds", got)
		}
	})
}

// TestTwoEventsOfOneID: nothing in the table forbids them. The first is meant, and the rest of the call is done.
func TestTwoEventsOfOneID(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		one, two := e.event("1", "placed", state.Published), e.event("1", "placed", state.Published)
		e.exec(`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, state,
				published_at)
			SELECT lane, id, event_type, aggregate_type, aggregate_id, payload_json, state, published_at
			  FROM {schema}.outbox_events WHERE id = $1`, one.String())
		e.wantRedelivered(action(), operator.Redelivery{}, "done published, done published", one, two)
		if got := e.one(`SELECT string_agg((event_seq = (SELECT min(seq) FROM {schema}.outbox_events WHERE id = event_id))
			::text, ' ') FROM {schema}.outbox_requests`); got != "true true" {
			t.Errorf("the first events are asked for: %s", got)
		}
	})
}

// TestACancelThatIsNotEndedEndsSoon: relays wait for the rows that it has locked.
func TestACancelThatIsNotEndedEndsSoon(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		tx, err := e.admin.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		var limit string
		if err := tx.QueryRow(t.Context(), e.sql(`SELECT current_setting('idle_in_transaction_session_timeout')
			FROM {schema}.outbox_cancel('ada', 'why', gen_random_uuid())`)).Scan(&limit); err != nil || limit != "10s" {
			t.Errorf("it may stay open for %q, %v", limit, err)
		}
	})
}

// TestTenThousandAtOnce: the most that one call takes, by the function as well.
func TestTenThousandAtOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const most = operator.MaxEvents
		e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state,
				published_at)
			SELECT g.id, 'placed', 'order', (i % 50)::text, json_build_object('eventId', g.id), 6, now()
			  FROM (SELECT i, {schema}.outbox_uuid7() AS id FROM generate_series(1, $1::integer) i OFFSET 0) g`, most)
		const ids = "(SELECT array_agg(id) FROM {schema}.outbox_events)"
		if _, err := e.admin.Exec(t.Context(), e.sql("SELECT {schema}.outbox_redeliver('ada', '', "+ids+
			" || {schema}.outbox_uuid7())")); err == nil || !strings.Contains(err.Error(), "the limit of one call is 10000") {
			t.Errorf("one too many: %v", err)
		}
		a, done := action(), "SELECT count(*)::text FROM {schema}.outbox_redeliver('ada', '', "+ids+
			", action_id => $1::text::uuid) WHERE outcome = $2"
		if got := e.one(done, a.ID.String(), "done"); got != "10000" {
			t.Errorf("%s are done", got)
		}
		if got := e.one(done, a.ID.String(), "done before"); got != "10000" {
			t.Errorf("%s are done before", got)
		}
		more := e.event("1", "placed", state.Published)
		e.wantRedelivered(a, operator.Redelivery{}, "done published", more)
		cancel := action()
		e.wantCanceled(cancel, a.ID, "10000 canceled, 1 left")
		e.wantCanceled(cancel, a.ID, "1 canceled, 0 left")
	})
}

// TestCancel: what is open and in nobody's hands, once in the log, and nothing of another action.
func TestCancel(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		one, two := e.event("1", "placed", state.Published), e.event("1", "placed", state.Published)
		three := e.event("1", "placed", state.Published)
		a, other := action(), action()
		e.wantRedelivered(a, operator.Redelivery{}, "done published, done published, done published", one, two, three)
		e.wantRedelivered(other, operator.Redelivery{}, "done published", one)
		e.exec("UPDATE {schema}.outbox_requests SET delivered_at = now() WHERE event_id = $1 AND action_id = $2",
			one.String(), a.ID.String())
		e.exec("UPDATE {schema}.outbox_lanes SET owner = gen_random_uuid(), token = gen_random_uuid()")
		e.exec(`UPDATE {schema}.outbox_requests r SET taken = 1, taken_by = (SELECT token FROM {schema}.outbox_lanes l
			WHERE l.lane = r.lane) WHERE event_id = $1`, two.String())
		e.exec("UPDATE {schema}.outbox_requests SET taken = 1, taken_by = gen_random_uuid() WHERE event_id = $1",
			three.String())
		cancel := action()
		e.wantCanceled(cancel, a.ID, "1 canceled, 1 left")
		e.wantCanceled(cancel, a.ID, "0 canceled, 1 left")
		e.exec("UPDATE {schema}.outbox_lanes SET owner = NULL, token = NULL")
		e.wantCanceled(cancel, a.ID, "1 canceled, 0 left")
		e.wantCanceled(action(), outbox.NewID(), "0 canceled, 0 left")
		if _, _, err := e.operator.Cancel(t.Context(), cancel, other.ID); err == nil ||
			!strings.Contains(err.Error(), "used before, for requests of") {
			t.Errorf("the id of another decision: %v", err)
		}
		if _, _, err := e.operator.Cancel(t.Context(), a, other.ID); err == nil ||
			!strings.Contains(err.Error(), "used before, for a redeliver") {
			t.Errorf("the id of a redelivery: %v", err)
		}
		if _, _, err := e.operator.Cancel(t.Context(), operator.Action{}, a.ID); err == nil {
			t.Error("an action without an id or an actor")
		}
		if got := e.one(`SELECT count(*)::text FROM {schema}.outbox_requests
			WHERE action_id = $1 AND canceled_at IS NULL`, other.ID.String()); got != "1" {
			t.Errorf("the other action's request: %s", got)
		}
		if got := e.one(`SELECT count(*)::text FROM {schema}.outbox_actions a, {schema}.outbox_meta
			WHERE action_id = $1 AND event_id = installation AND actor = 'ann' AND target = 'requests of ' || $2::text`,
			cancel.ID.String(), a.ID.String()); got != "1" {
			t.Errorf("%s rows of the log", got)
		}
		e.wantCanceled(action(), a.ID, "0 canceled, 0 left")
		if got := e.one("SELECT count(*)::text FROM {schema}.outbox_actions WHERE verb = 'cancel'"); got != "1" {
			t.Errorf("with those that had nothing to cancel the log has %s rows", got)
		}
	})
}
