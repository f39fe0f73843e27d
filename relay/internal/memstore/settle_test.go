package memstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// TestAStaleSettleChangesNothing: not even in those of its lanes that are still held, which it names.
func TestAStaleSettleChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	ids := d.emit("a", "b")
	old, two := d.register(), d.register()
	given, _ := d.acquire(old, 0)
	d.acquire(old, 1)
	d.ExpireRelay(old.Relay)
	if answer := d.heartbeat(core.Heartbeat{Owner: old}); answer.Ended || !slices.Equal(answer.Held, []int16{0, 1}) {
		t.Fatalf("a relay that had expired, and that nobody ended, is not alive again: %+v", answer)
	}
	if ended, err := d.EndExpired(t.Context(), core.EndExpired{Max: 8}); err != nil || len(ended) > 0 {
		t.Fatalf("ended %v, %v", ended, err)
	}
	d.must(d.Release(t.Context(), core.Release{
		Owner: old, Lanes: []core.Progress{{Tenure: core.Tenure{Lane: 0, Token: given}}},
	}))
	if _, taken := d.acquire(two, 0, 1); len(taken) != 1 || taken[0] != (core.Acquired{Lane: 0}) {
		t.Fatalf("took %+v", taken)
	}
	stale := &core.Settle{
		Owner: old, Lanes: []int16{0, 1},
		Published: d.rows(ids[1:]...),
		Dead:      []core.Death{{Found: d.ready(ids[0]), Blocking: true, Attempts: 1, Reason: "rejected"}},
	}
	if answer := d.settle(stale); answer.Applied || !slices.Equal(answer.Held, []int16{1}) {
		t.Errorf("the stale settle answered %+v", answer)
	}
	wantState(d, ids[0], core.Ready)
	wantState(d, ids[1], core.Ready)
	if n := len(d.Letters()); n != 0 {
		t.Errorf("a stale settle wrote %d letters", n)
	}
	d.crash(old)
	if answer := d.settle(stale); answer.Applied || len(answer.Held) > 0 {
		t.Errorf("the settle of a relay that was ended answered %+v", answer)
	}
	if _, taken := d.acquire(old, 1); len(taken) > 0 {
		t.Errorf("a relay that was ended took %+v", taken)
	}
	d.acquire(two, 1)
	stale.Owner = two
	if answer := d.settle(stale); !answer.Applied || len(answer.Unchanged) > 0 {
		t.Errorf("the settle answered %+v", answer)
	}
	if again := d.settle(stale); !again.Applied || !slices.Equal(again.Unchanged, ids[:1]) { // it changes nothing any more
		t.Errorf("sent again it answered %+v", again)
	}
	wantState(d, ids[0], core.DeadBlocking)
	wantState(d, ids[1], core.Published)
	if letters := d.Letters(); len(letters) != 1 || letters[0].Event != ids[0] || len(letters[0].Payload) == 0 {
		t.Errorf("letters: %+v", letters)
	}
	if n := len(d.Changes()); n != 2 {
		t.Errorf("%d changes, want 2", n)
	}
}

// TestAChangeAsksForTheStateItStartsFrom goes through every kind of settle and every state.
func TestAChangeAsksForTheStateItStartsFrom(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct {
		settle func(e core.Event) *core.Settle
		to     core.State
		from   []core.State
	}{
		"published": {func(e core.Event) *core.Settle {
			return &core.Settle{Published: []core.Found{e.Found()}}
		}, core.Published, []core.State{core.Ready, core.Retrying, core.Waiting}},
		"retry": {func(e core.Event) *core.Settle {
			return &core.Settle{Retry: []core.Retry{{Found: e.Found(), Attempts: 3}}}
		}, core.Retrying, []core.State{core.Ready, core.Retrying, core.Waiting}},
		"wait": {func(e core.Event) *core.Settle {
			return &core.Settle{Wait: []core.Found{e.Found()}}
		}, core.Waiting, []core.State{core.Ready}},
		"park": {func(e core.Event) *core.Settle {
			return &core.Settle{Park: []core.Park{{Found: e.Found()}}}
		}, core.Parked, []core.State{core.Ready, core.Retrying, core.Waiting}},
		"dead": {func(e core.Event) *core.Settle {
			return &core.Settle{Dead: []core.Death{{Found: e.Found()}}}
		}, core.Dead, []core.State{core.Ready, core.Retrying, core.Parked, core.Waiting}},
		"blocking": {func(e core.Event) *core.Settle {
			return &core.Settle{Dead: []core.Death{{Found: e.Found(), Blocking: true}}}
		}, core.DeadBlocking, []core.State{core.Ready, core.Retrying, core.Parked, core.Waiting}},
	}
	into := map[core.State]func(d *db, id outbox.ID){
		core.Ready:        func(*db, outbox.ID) {},
		core.Retrying:     func(d *db, id outbox.ID) { d.settle(kinds["retry"].settle(d.found(id))) },
		core.Parked:       func(d *db, id outbox.ID) { d.settle(kinds["park"].settle(d.found(id))) },
		core.Waiting:      func(d *db, id outbox.ID) { d.settle(kinds["wait"].settle(d.found(id))) },
		core.DeadBlocking: func(d *db, id outbox.ID) { d.settle(kinds["blocking"].settle(d.found(id))) },
		core.Dead:         func(d *db, id outbox.ID) { d.settle(kinds["dead"].settle(d.found(id))) },
		core.Published:    func(d *db, id outbox.ID) { d.settle(kinds["published"].settle(d.found(id))) },
		core.Discarded: func(d *db, id outbox.ID) {
			d.settle(kinds["dead"].settle(d.found(id)))
			d.operate(check.Discard, id)
		},
	}
	for name, kind := range kinds {
		for from, bring := range into {
			d := newDB(t)
			id := d.emit("a")[0]
			bring(d, id)
			wantState(d, id, from)
			d.settle(kind.settle(d.found(id)))
			want := from
			if slices.Contains(kind.from, from) {
				want = kind.to
			}
			if got := d.state(id); got != want {
				t.Errorf("%s of state %d went to %d, want %d", name, from, got, want)
			}
		}
	}
}

// found is the event as a relay reads it.
func (d *db) found(id outbox.ID) core.Event {
	event, _ := d.Event(id)
	return event
}

// TestWhatOperatorsUndidStaysUndone: a parking and a death that are settled again change nothing, once an operator has
// released or redriven the event, also if it was retrying or parked before and is so again.
func TestWhatOperatorsUndidStaysUndone(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	id := d.emit("a")[0]
	for i, undo := range []check.Verb{check.Free, check.Free, check.Redrive, check.Redrive} {
		event := d.found(id)
		settle := &core.Settle{Park: []core.Park{{Found: event.Found()}}}
		if undo == check.Redrive {
			settle = &core.Settle{Dead: []core.Death{{Found: event.Found()}}}
		}
		d.settle(settle)
		d.now++
		d.operate(undo, id)
		d.settle(settle)
		if state := d.state(id); state != core.Retrying {
			t.Errorf("%d: after the %s and the second settle the event is in state %d", i, undo, state)
		}
	}
	first := d.found(id)
	d.settle(&core.Settle{Park: []core.Park{{Found: first.Found()}}})
	parked := d.found(id)
	d.now += time.Hour
	d.settle(&core.Settle{Park: []core.Park{{Found: parked.Found()}}})
	if again := d.found(id); again.Version != parked.Version {
		t.Errorf("version %d was parked, and was parked again as %d", parked.Version, again.Version)
	}
}

// TestHeldRowsAreReadByAggregate, in order, with payloads only where they may be sent.
func TestHeldRowsAreReadByAggregate(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	ids := d.emit("a", "a", "a", "a", "ab")
	d.settle(&core.Settle{
		Retry: []core.Retry{
			{Found: d.ready(ids[0]), Attempts: 2, Delay: time.Minute, Error: "no"}, {Found: d.ready(ids[4]), Attempts: 1},
		},
		Wait: d.rows(ids[1:2]...), Park: []core.Park{{Found: d.ready(ids[2])}},
		Dead: []core.Death{{Found: d.ready(ids[3]), Blocking: true}},
	})
	rows, err := d.HeldRows(t.Context(), core.HeldRows{
		Asks: []core.HeldAsk{
			{Lane: 0, Aggregate: core.Aggregate{Namespace: "default", Type: "order", ID: "a"}, Types: []string{"placed"}},
		},
		Limit: 10,
	})
	d.must(err)
	var states []core.State
	var payloads []bool
	for _, r := range rows.Events {
		states, payloads = append(states, r.State), append(payloads, r.Payload != nil)
	}
	if !slices.Equal(states, []core.State{core.Retrying, core.Waiting, core.Parked, core.DeadBlocking}) ||
		!slices.Equal(payloads, []bool{true, true, false, false}) {
		t.Errorf("states %v, payloads %v", states, payloads)
	}
	if rows.Events[0].DueIn != time.Minute || rows.Events[0].Attempts != 2 {
		t.Errorf("the retrying row is %+v", rows.Events[0])
	}
	due, err := d.DueKeys(t.Context(), core.DueKeys{Lanes: []core.LaneFrom{{Lane: 0}}, Limit: 10})
	d.must(err)
	if len(due.Keys) != 1 || due.Keys[0].Aggregate.ID != "ab" {
		t.Errorf("due: %+v", due)
	}
	d.now += time.Minute
	if due, _ = d.DueKeys(t.Context(), core.DueKeys{Lanes: []core.LaneFrom{{Lane: 0}}, Limit: 10}); len(due.Keys) != 2 {
		t.Errorf("due a minute later: %+v", due)
	}
	keys, err := d.HeldKeys(t.Context(), core.HeldKeys{Lanes: core.AllLines(0, 1)})
	d.must(err)
	if len(keys.Keys) != 2 || keys.Keys[0].Aggregate.ID != "a" || keys.Keys[0].State != core.Retrying ||
		keys.Keys[1].Aggregate.ID != "ab" {
		t.Errorf("held: %+v", keys)
	}
	if old, _ := d.OldParked(t.Context(), core.OldParked{
		Lanes: core.FromStart(0), Age: time.Second, Limit: 10,
	}); len(old.Events) != 1 || old.Events[0].ID != ids[2] || old.Events[0].Payload != nil {
		t.Errorf("old parked: %+v", old)
	}
	if old, _ := d.OldParked(t.Context(), core.OldParked{
		Lanes: core.FromStart(0), Age: time.Hour, Limit: 10,
	}); len(old.Events) != 0 {
		t.Errorf("parked for a minute, not for an hour: %+v", old)
	}
}

// TestUnparkNeedsTheLaneAndTheType.
func TestUnparkNeedsTheLaneAndTheType(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	tx := d.Begin()
	known, unknown, other := d.event("a", "placed"), d.event("a", "odd"), d.event("b", "placed")
	d.write(tx, known, unknown, other)
	d.commit(tx)
	d.settle(&core.Settle{Park: []core.Park{
		{Found: d.ready(known.ID)}, {Found: d.ready(unknown.ID)}, {Found: d.ready(other.ID)},
	}})
	d.acquire(d.owner, 0)
	_, err := d.Unpark(t.Context(), core.Unpark{
		Owner: d.owner, Lanes: core.FromStart(0, 1), Types: []string{"placed"},
	})
	d.must(err)
	wantState(d, known.ID, core.Retrying)
	wantState(d, unknown.ID, core.Parked)
	wantState(d, other.ID, core.Parked)
}

// TestVerbs: each from its states, with the first of each type that waited behind a head going on.
func TestVerbs(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	tx := d.Begin()
	head, follower, second, paid, other, waiting, parked := d.event("a", "placed"), d.event("a", "placed"),
		d.event("a", "placed"), d.event("a", "paid"),
		d.event("b", "placed"), d.event("b", "placed"), d.event("c", "placed")
	d.write(tx, head, follower, second, paid, other, waiting, parked)
	d.commit(tx)
	d.settle(&core.Settle{
		Dead: []core.Death{
			{Found: d.ready(head.ID), Blocking: true, Attempts: 4, Reason: "rejected"},
			{Found: d.ready(other.ID), Blocking: true, Reason: "rejected"},
		},
		Wait: d.rows(follower.ID, second.ID, paid.ID, waiting.ID), Park: []core.Park{{Found: d.ready(parked.ID)}},
	})
	d.operate(check.Redrive, head.ID)
	wantState(d, head.ID, core.Retrying)
	wantState(d, follower.ID, core.Waiting)
	if event, _ := d.Event(head.ID); event.Attempts != 0 {
		t.Errorf("redriven with %d attempts", event.Attempts)
	}
	redriven := d.found(head.ID)
	d.settle(&core.Settle{Dead: []core.Death{{Found: redriven.Found(), Blocking: true, Reason: "rejected"}}})
	d.operate(check.Skip, head.ID)
	wantState(d, head.ID, core.Dead)
	wantState(d, follower.ID, core.Retrying)
	wantState(d, second.ID, core.Waiting)
	wantState(d, paid.ID, core.Retrying)
	d.operate(check.Discard, other.ID)
	wantState(d, other.ID, core.Discarded)
	wantState(d, waiting.ID, core.Retrying)
	d.operate(check.Free, parked.ID)
	wantState(d, parked.ID, core.Retrying)
	var verbs []check.Verb
	var letters []int64
	for _, a := range d.Actions() {
		verbs, letters = append(verbs, a.Verb), append(letters, a.Letter)
	}
	if !slices.Equal(verbs, []check.Verb{check.Redrive, check.Skip, check.Discard, check.Free}) ||
		!slices.Equal(letters, []int64{1, 3, 2, 0}) {
		t.Errorf("actions: %v of letters %v", verbs, letters)
	}
}

// TestAnActionIsDoneOnce: sent again it is answered again, and it is not another verb's.
func TestAnActionIsDoneOnce(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	ids := d.emit("a", "b")
	die := &core.Settle{Dead: []core.Death{
		{Found: d.ready(ids[0]), Reason: "rejected"}, {Found: d.ready(ids[1]), Reason: "rejected"},
	}}
	d.settle(die)
	order := memstore.Order{Action: d.id(), Actor: "ann"}
	for _, want := range []memstore.Outcome{memstore.Done, memstore.DoneBefore} {
		results, err := d.Operate(check.Redrive, order, ids[0])
		d.must(err)
		if results[0].Outcome != want {
			t.Errorf("the answer is %q, want %q", results[0].Outcome, want)
		}
	}
	results, err := d.Operate(check.Redrive, order, ids[1], d.id())
	d.must(err)
	if results[0].Outcome != memstore.NotApplicable || results[1].Outcome != memstore.NotFound {
		t.Errorf("an action that was over: %+v", results)
	}
	if _, err := d.Operate(check.Discard, order, ids[1]); err == nil {
		t.Error("the action's id was taken for another verb")
	}
	wantState(d, ids[1], core.Dead)
}

// TestADumpFeedsTheChecker: what the store writes is a history that the checker reads, with no complaint
// about anything but what nobody recorded here: transactions.
func TestADumpFeedsTheChecker(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	ids := d.emit("a", "a", "b")
	d.settle(&core.Settle{
		Dead: []core.Death{{Found: d.ready(ids[0]), Blocking: true, Reason: "rejected"}},
		Wait: d.rows(ids[1:2]...), Published: d.rows(ids[2:]...),
	})
	d.operate(check.Skip, ids[0])
	d.settle(&core.Settle{Published: d.rows(ids[1:2]...)})
	history := d.Dump()
	history = append(history, check.Record{End: &check.End{Dumped: true}})
	verdict := history.Check(check.Floor{})
	for _, counter := range []check.Counter{
		check.IllegalTransitions, check.DeadWithoutLetter, check.LetterWithoutDead, check.Malformed,
	} {
		if n := verdict.Count(counter); n != 0 {
			t.Errorf("%s: %d", counter, n)
		}
	}
	if len(history) != 6+3+1+1+1 {
		t.Errorf("%d records", len(history))
	}
}
