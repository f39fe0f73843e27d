package pgstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// redeliver asks for events again, as their owner, and answers the action. An empty topic is where their types go.
func (w *world) redeliver(t testing.TB, topic string, events ...outbox.ID) outbox.ID {
	t.Helper()
	action, ids := outbox.NewID(), make([]string, len(events))
	for i, id := range events {
		ids[i] = id.String()
	}
	done := w.count(t, `SELECT count(*) FROM {schema}.outbox_redeliver('ada', 'why', $1::text[]::uuid[], nullif($2, ''),
		action_id => $3::text::uuid) WHERE outcome = 'done'`, ids, topic, action.String())
	if done != len(events) {
		t.Fatalf("%d of %d events are asked for", done, len(events))
	}
	return action
}

const many = 1 << 20

// usual is a take of all that holder's lanes have.
func usual(h holder) core.TakeRequests {
	return core.TakeRequests{
		Owner: h.Owner, Lanes: h.lanes(), Limit: many, Look: many, MaxBytes: many, Types: []string{"order_created", "paid"},
	}
}

// wantTaken takes, and compares the events of the requests.
func (w *world) wantTaken(t testing.TB, take core.TakeRequests, want ...outbox.ID) core.RequestsAnswer {
	t.Helper()
	answer := must(w.store.TakeRequests(t.Context(), take))(t)
	var got []outbox.ID
	for i := range answer.Requests {
		got = append(got, answer.Requests[i].Event.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
	return answer
}

// giveBack makes what was taken open again.
func (w *world) giveBack(t testing.TB, h holder, answer core.RequestsAnswer) {
	t.Helper()
	w.endRequests(t, h, core.RequestOpen, "", answer.Requests...)
}

func (w *world) endRequests(t testing.TB, h holder, state core.RequestState, text string, requests ...core.Request) {
	t.Helper()
	settle := &core.SettleRequests{Owner: h.Owner, Lanes: h.lanes()}
	for i := range requests {
		settle.Ends = append(settle.Ends, core.RequestEnd{
			ID: requests[i].ID, Version: requests[i].Version, Lane: requests[i].Event.Lane, State: state, Attempts: 2,
			Error: text,
		})
	}
	if answer := must(w.store.SettleRequests(t.Context(), settle))(t); !answer.Applied {
		t.Errorf("settle: %+v", answer)
	}
}

// TestTakeRequests: in the order of the events, whatever the order in which they were asked for, with what the relay
// needs, and counted; not what is behind a type that may not go, not what is paused, and not too much.
//
//nolint:paralleltest // one part leaves what the next one takes
func TestTakeRequests(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		one, two := w.add(t, "1", core.Published), w.addType(t, "1", "odd", core.Published)
		three, four := w.addType(t, "1", "paid", core.Published), w.add(t, "1", core.Published)
		later := w.redeliver(t, "", four)
		action := w.redeliver(t, "", three, two, one)
		named := w.redeliver(t, "copies", one)

		t.Run("behind a type that may not go", func(t *testing.T) {
			answer := w.wantTaken(t, usual(h), one, one, four)
			if want := []core.LaneType{{Lane: h.lane(), Type: "odd"}}; !slices.Equal(answer.Missing, want) {
				t.Errorf("missing %v", answer.Missing)
			}
			first, second, last := answer.Requests[0], answer.Requests[1], answer.Requests[2]
			if first.Action != action || second.Action != named || last.Action != later {
				t.Errorf("the actions are %s, %s and %s", first.Action, second.Action, last.Action)
			}
			if first.Topic != "" || second.Topic != "copies" || first.Taken != 1 {
				t.Errorf("%+v and %+v", first, second)
			}
			if string(first.Event.Payload) != payload(one) || first.Event.Type != "order_created" ||
				first.Event.State != core.Published || first.Event.Aggregate.ID != "1" {
				t.Errorf("the event is %+v", first.Event)
			}
			w.giveBack(t, h, answer)
		})
		t.Run("of all types", func(t *testing.T) {
			take := usual(h)
			take.Types = append(take.Types, "odd")
			w.giveBack(t, h, w.wantTaken(t, take, one, one, two, three, four))
		})
		for name, change := range map[string]func(*core.TakeRequests){
			"to a paused topic": func(take *core.TakeRequests) { take.PausedTopics = []string{"copies", "x"} },
			"limit":             func(take *core.TakeRequests) { take.Limit = 1 },
			"look":              func(take *core.TakeRequests) { take.Look = 1 },
			"bytes":             func(take *core.TakeRequests) { take.MaxBytes = 1 },
		} {
			take := usual(h)
			change(&take)
			want := []outbox.ID{one}
			if name == "to a paused topic" {
				want = []outbox.ID{one, four}
			}
			answer := w.wantTaken(t, take, want...)
			if answer.Requests[0].Topic != "" {
				t.Errorf("%s: %+v", name, answer.Requests[0])
			}
			w.giveBack(t, h, answer)
		}
		t.Run("of a paused type", func(t *testing.T) {
			take := usual(h)
			take.PausedTypes = []string{"order_created"}
			answer := w.wantTaken(t, take, one)
			if answer.Requests[0].Topic != "copies" {
				t.Errorf("%+v", answer.Requests[0])
			}
			w.giveBack(t, h, answer)
		})
		for name, is := range map[string]struct {
			busy core.LaneTopic
			want []outbox.ID
		}{
			"a topic that a request names": {core.LaneTopic{Lane: h.lane(), Topic: "copies"}, []outbox.ID{one, four}},
			"the topic of its types": {
				core.LaneTopic{Lane: h.lane(), Topic: "orders", Types: []string{"paid", "order_created"}}, []outbox.ID{one},
			},
			"a topic of another lane": {
				core.LaneTopic{Lane: h.lane() + 1, Topic: "copies", Types: []string{"order_created"}}, []outbox.ID{one, one, four},
			},
		} {
			t.Run("beside "+name, func(t *testing.T) {
				take := usual(h)
				take.Busy = []core.LaneTopic{is.busy}
				w.giveBack(t, h, w.wantTaken(t, take, is.want...))
			})
		}
		t.Run("not due yet", func(t *testing.T) {
			w.exec(t, "UPDATE {schema}.outbox_requests SET due_at = now() + interval '1 hour' WHERE event_id = $1", one.String())
			w.giveBack(t, h, w.wantTaken(t, usual(h), four))
		})
	})
}

// TestWhatARelayDoesNotKnowToHaveIsTold: what it took, neither in memory nor taken again, without the payload. It stays
// as it is until the relay gives it back.
func TestWhatARelayDoesNotKnowToHaveIsTold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		one, two := w.add(t, "1", core.Published), w.addType(t, "1", "paid", core.Published)
		three, four := w.add(t, "1", core.Published), w.add(t, "1", core.Published)
		action := w.redeliver(t, "", one, two, three, four)
		taken := w.wantTaken(t, usual(h), one, two, three, four).Requests
		w.endRequests(t, h, core.RequestOpen, "", taken[3])
		told := func(when string, take core.TakeRequests, want ...outbox.ID) []core.Request {
			t.Helper()
			forgotten := must(w.store.TakeRequests(t.Context(), take))(t).Forgotten
			var got []outbox.ID
			for i := range forgotten {
				got = append(got, forgotten[i].Event.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: it has %v, and not %v", when, got, want)
			}
			return forgotten
		}
		nothing := usual(h)
		nothing.Limit, nothing.InMemory = 0, []int64{taken[1].ID}
		for _, r := range told("when nothing may be taken", nothing, one, three) {
			if r.Action != action || r.Attempts != 0 || r.Event.Lane != h.lane() || r.Event.Type != "order_created" ||
				len(r.Event.Payload)+len(r.Event.Headers) > 0 {
				t.Errorf("%+v", r)
			}
		}
		const inHands = "SELECT count(*) FROM {schema}.outbox_requests WHERE taken = 1 AND taken_by IS NOT NULL"
		if n := w.count(t, inHands); n != 3 {
			t.Errorf("%d are in hands", n)
		}
		paused := usual(h)
		paused.PausedTypes = []string{"order_created"}
		told("beside what is taken again", paused, one, three)
		all := usual(h)
		all.Limit = 0
		w.endRequests(t, h, core.RequestOpen, "", taken[0], taken[2])
		told("when some was given back", all, two)
		w.exec(t, "UPDATE {schema}.outbox_requests SET taken_by = gen_random_uuid()")
		told("when another had it", all)
	})
}

// TestARequestThatRelaysDieOfGoesAlone: what three have taken and not come back with.
func TestARequestThatRelaysDieOfGoesAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		one, two := w.add(t, "1", core.Published), w.add(t, "1", core.Published)
		three := w.add(t, "1", core.Published)
		w.redeliver(t, "", one, two, three)
		first := usual(h)
		first.Limit = 2
		for range 3 {
			w.wantTaken(t, first, one, two)
		}
		if got := w.wantTaken(t, usual(h), one).Requests[0].Taken; got != 4 {
			t.Errorf("taken %d times", got)
		}
		w.endRequests(t, h, core.RequestDelivered, "", w.wantTaken(t, usual(h), one).Requests...)
		w.giveBack(t, h, w.wantTaken(t, usual(h), two))
		w.wantTaken(t, usual(h), two, three)
	})
}

// TestNothingOfOtherLanesGoesBesideIt: those would be counted as what relays died of as well.
func TestNothingOfOtherLanesGoesBesideIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1", "2")
		one, two := w.add(t, "1", core.Published), w.add(t, "2", core.Published)
		w.redeliver(t, "", one, two)
		for _, first := range h.lanes() { // in whatever order the lanes are named
			take := usual(h)
			take.Lanes = append([]int16{first}, slices.DeleteFunc(h.lanes(), func(l int16) bool { return l == first })...)
			w.exec(t, "UPDATE {schema}.outbox_requests SET taken = CASE WHEN event_id = $1 THEN 3 ELSE 2 END", two.String())
			w.wantTaken(t, take, two)
			w.exec(t, "UPDATE {schema}.outbox_requests SET taken = 5")
			answer := must(w.store.TakeRequests(t.Context(), take))(t)
			if len(answer.Requests) != 1 || answer.Requests[0].Event.Lane != first {
				t.Errorf("of two in two lanes took %d", len(answer.Requests))
			}
		}
	})
}

// TestWhatIsGivenBackKeepsItsAttempts, and its error, whoever takes it next.
func TestWhatIsGivenBackKeepsItsAttempts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		one := w.add(t, "1", core.Published)
		w.redeliver(t, "", one)
		w.endRequests(t, h, core.RequestOpen, "timed out", w.wantTaken(t, usual(h), one).Requests...)
		answer := w.wantTaken(t, usual(h), one)
		if got := answer.Requests[0].Attempts; got != 2 {
			t.Errorf("%d attempts", got)
		}
		w.giveBack(t, h, answer)
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_requests WHERE last_error = 'timed out'"); n != 1 {
			t.Error("its error is gone")
		}
	})
}

// TestSettleRequests: how they ended is written down once, and the event stays as it is.
func TestSettleRequests(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		one, two := w.add(t, "1", core.Published), w.add(t, "1", core.Published)
		three := w.add(t, "1", core.Published)
		w.redeliver(t, "", one, two, three)
		events := w.rows(t, "SELECT * FROM {schema}.outbox_events ORDER BY seq")
		taken := w.wantTaken(t, usual(h), one, two, three).Requests
		w.endRequests(t, h, core.RequestDelivered, "", taken[0])
		w.endRequests(t, h, core.RequestFailed, "no\x00 "+strings.Repeat("ü", 5000), taken[1])
		w.endRequests(t, h, core.RequestFailed, "again", taken[:2]...)
		w.endRequests(t, h, core.RequestOpen, "", taken...)
		const states = `SELECT delivered_at IS NOT NULL, failed_at IS NOT NULL, taken, taken_by, attempts,
			length(coalesce(last_error, '')) BETWEEN 1000 AND 2048 FROM {schema}.outbox_requests ORDER BY event_seq`
		if got := fmt.Sprint(w.rows(t, states)); got != "[(t,f,0,,2,f) (f,t,0,,2,t) (f,f,0,,2,f)]" {
			t.Errorf("the requests are %s", got)
		}
		if got := w.rows(t, "SELECT * FROM {schema}.outbox_events ORDER BY seq"); !slices.Equal(got, events) {
			t.Error("the events have changed")
		}
	})
}

// TestAGiveBackThatIsDoneLateDoesNothing: what was given back and taken again is being sent, and stays in hands. That
// it was delivered is written down whoever took it last.
func TestAGiveBackThatIsDoneLateDoesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		one, two := w.add(t, "1", core.Published), w.add(t, "1", core.Published)
		w.redeliver(t, "", one, two)
		first := w.wantTaken(t, usual(h), one, two)
		w.giveBack(t, h, first)
		again := w.wantTaken(t, usual(h), one, two)
		w.giveBack(t, h, first)
		const inHands = "SELECT count(*) FROM {schema}.outbox_requests WHERE taken = 1 AND taken_by IS NOT NULL"
		if n := w.count(t, inHands); n != 2 {
			t.Errorf("%d of 2 are in hands", n)
		}
		look := usual(h)
		look.Limit = 0
		for _, forgotten := range must(w.store.TakeRequests(t.Context(), look))(t).Forgotten {
			if !slices.ContainsFunc(again.Requests, func(r core.Request) bool {
				return r.ID == forgotten.ID && r.Version == forgotten.Version
			}) {
				t.Errorf("request %d is told with the version %d", forgotten.ID, forgotten.Version)
			}
		}
		w.endRequests(t, h, core.RequestDelivered, "", first.Requests[0])
		w.endRequests(t, h, core.RequestOpen, "", again.Requests[1])
		if n := w.count(t, inHands); n != 0 {
			t.Errorf("%d are in hands still", n)
		}
	})
}

// TestALostLaneTakesAndSettlesNoRequests: not those of lanes that another has, and then none at all.
func TestALostLaneTakesAndSettlesNoRequests(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		one := w.add(t, "1", core.Published)
		w.redeliver(t, "", one)
		taken := w.wantTaken(t, usual(h), one).Requests
		if err := w.store.Release(t.Context(), core.Release{
			Owner: h.Owner, Lanes: []core.Progress{h.at(h.lane(), 0)}, Tokens: []outbox.ID{h.tenure},
		}); err != nil {
			t.Fatal(err)
		}
		if lost := w.wantTaken(t, usual(h)).Lost; !slices.Equal(lost, h.lanes()) {
			t.Errorf("lost %v", lost)
		}
		next := w.hold(t, "1")
		w.wantTaken(t, usual(next), one)
		answer := must(w.store.SettleRequests(t.Context(), &core.SettleRequests{
			Owner: h.Owner, Lanes: h.lanes(), Ends: []core.RequestEnd{
				{ID: taken[0].ID, Lane: h.lane(), State: core.RequestDelivered},
			},
		}))(t)
		if answer.Applied || len(answer.Held) > 0 {
			t.Errorf("a settle of one who lost the lane: %+v", answer)
		}
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_requests WHERE delivered_at IS NULL AND taken = 2"); n != 1 {
			t.Error("it was applied")
		}
	})
}

// TestTakeAndCancelAtOnce: whoever comes second sees what the first did. What was canceled is not taken, and what was
// taken is not canceled, but by a holder who is no more.
func TestTakeAndCancelAtOnce(t *testing.T) {
	t.Parallel()
	const cancel = "SELECT canceled, remaining FROM {schema}.outbox_cancel('ada', 'why', $1)"
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		one, two := w.add(t, "1", core.Published), w.add(t, "1", core.Published)
		action := w.redeliver(t, "", one)
		w.redeliver(t, "", two)

		canceling := w.begin(t)
		var canceled, left int
		if err := canceling.QueryRow(t.Context(), w.sql(cancel), action.String()).Scan(&canceled, &left); err != nil ||
			canceled != 1 || left != 0 {
			t.Fatalf("canceled %d, left %d, %v", canceled, left, err)
		}
		taken := make(chan core.RequestsAnswer)
		go func() { taken <- w.wantTaken(t, usual(h), two) }()
		w.blocked(t, canceling.Conn().PgConn().PID(), 1)
		if err := canceling.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.giveBack(t, h, receive(t, "a take", taken))

		action = w.redeliver(t, "", one)
		taking := w.beginAs(t)
		if _, err := taking.Exec(t.Context(), statement("take_requests", w), pgstore.TakeArgs(usual(h))...); err != nil {
			t.Fatal(err)
		}
		answered := make(chan []string)
		go func() { answered <- w.rows(t, cancel, action.String()) }()
		w.blocked(t, taking.Conn().PgConn().PID(), 1)
		if err := taking.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "a cancel", answered); !slices.Equal(got, []string{"(0,1)"}) {
			t.Errorf("a cancel of what is in hands: %v", got)
		}
		w.end(t)
		if got := w.rows(t, cancel, action.String()); !slices.Equal(got, []string{"(1,0)"}) {
			t.Errorf("a cancel of what a dead relay has: %v", got)
		}
	})
}

// TestThePlanOfTakeRequests: by the index of what is open, and each event by its key, however many there are.
func TestThePlanOfTakeRequests(t *testing.T) {
	t.Parallel()
	const all, open = 100_000, 6_400
	onEach(t, func(t *testing.T, w *world) {
		w.quiet(t)
		w.exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_requests")
		w.fill(t, 1, all, "'type_' || i % 40", "'kind'", "(i % 5000)::text", "6")
		w.exec(t, `WITH acted AS (INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor)
				SELECT gen_random_uuid(), 'redeliver', id, 'ada' FROM {schema}.outbox_events RETURNING action_id, event_id)
			INSERT INTO {schema}.outbox_requests (action_id, event_id, lane, event_seq, delivered_at)
			SELECT a.action_id, e.id, e.lane, e.seq, CASE WHEN e.seq <= (SELECT max(seq) FROM {schema}.outbox_events) - $1
			       THEN now() END
			  FROM acted a JOIN {schema}.outbox_events e ON e.id = a.event_id`, open)
		h := w.acquire(t)
		take := core.TakeRequests{Owner: h.Owner, Lanes: h.lanes(), Limit: 32, Look: 1000, MaxBytes: 1 << 30}
		for n := range 40 {
			take.Types = append(take.Types, fmt.Sprintf("type_%d", n))
		}
		plan := planned{
			"take requests", statement("take_requests", w), pgstore.TakeArgs(take), "outbox_requests_open", `lane = `, true,
			open, 20, 2000,
		}
		asked := planned{
			"requested", statement("requested", w), nil, "outbox_requests_open", `lane = `, true, 1, 0, 500,
		}
		for _, when := range []string{"statistics of an empty table", "fresh statistics"} {
			if when == "fresh statistics" {
				w.exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_requests")
			}
			w.inEachMode(t, when, plan, asked)
		}
	})
}

// TestARequestWithoutItsEventFails: retention took the event in the moment in which it was asked for. Nobody waits for
// the copy, and what else was asked for goes.
func TestARequestWithoutItsEventFails(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		h := w.hold(t, "1")
		gone, there := w.add(t, "1", core.Published), w.add(t, "1", core.Published)
		w.redeliver(t, "", gone, there)
		w.exec(t, "DELETE FROM {schema}.outbox_events WHERE id = $1", gone.String())
		w.wantTaken(t, usual(h), there)
		if n := w.count(t, `SELECT count(*) FROM {schema}.outbox_requests WHERE event_id = $1 AND failed_at IS NOT NULL
			AND last_error LIKE 'the event is not in%'`, gone.String()); n != 1 {
			t.Errorf("%d requests of the event that is gone have failed", n)
		}
	})
}
