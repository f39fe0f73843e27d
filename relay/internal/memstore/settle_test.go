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
	old, one, two := d.id(), d.id(), d.id()
	oldToken, _ := d.acquire(old, 0)
	keptToken, _ := d.acquire(one, 1)
	d.now += lease + 1
	beat := core.Heartbeat{
		Relay: one, Name: "one", Lease: lease, Lanes: []core.Renewal{{Tenure: core.Tenure{Lane: 1, Token: keptToken}}},
	}
	if answer, err := d.Heartbeat(t.Context(), beat); err != nil || !slices.Equal(answer.Renewed, []int16{1}) {
		t.Fatalf("an expired lane that nobody took was not renewed: %+v, %v", answer.Renewed, err)
	}
	newToken, taken := d.acquire(two, 0, 1)
	if len(taken) != 1 || taken[0] != (core.Acquired{Lane: 0, Crashed: true, CrashCount: 1}) {
		t.Fatalf("took %+v", taken)
	}
	stale := &core.Settle{
		Lanes:     []core.Tenure{{Lane: 0, Token: oldToken}, {Lane: 1, Token: keptToken}},
		Published: ids[1:], Dead: []core.Death{{ID: ids[0], Blocking: true, Attempts: 1, Reason: "rejected"}},
	}
	if answer := d.settle(stale); answer.Applied || !slices.Equal(answer.Held, []int16{1}) {
		t.Errorf("the stale settle answered %+v", answer)
	}
	wantState(d, ids[0], core.Ready)
	wantState(d, ids[1], core.Ready)
	if n := len(d.Letters()); n != 0 {
		t.Errorf("a stale settle wrote %d letters", n)
	}
	stale.Lanes[0].Token = newToken
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
			return &core.Settle{Published: []outbox.ID{e.ID}}
		}, core.Published, []core.State{core.Ready, core.Retrying, core.Waiting}},
		"retry": {func(e core.Event) *core.Settle {
			return &core.Settle{Retry: []core.Retry{{ID: e.ID, From: e.Found(), Attempts: 3}}}
		}, core.Retrying, []core.State{core.Ready, core.Retrying, core.Waiting}},
		"wait": {func(e core.Event) *core.Settle {
			return &core.Settle{Wait: []outbox.ID{e.ID}}
		}, core.Waiting, []core.State{core.Ready}},
		"park": {func(e core.Event) *core.Settle {
			return &core.Settle{Park: []core.Park{{ID: e.ID, From: e.Found()}}}
		}, core.Parked, []core.State{core.Ready, core.Retrying, core.Waiting}},
		"dead": {func(e core.Event) *core.Settle {
			return &core.Settle{Dead: []core.Death{{ID: e.ID, From: e.Found()}}}
		}, core.Dead, []core.State{core.Ready, core.Retrying, core.Parked, core.Waiting}},
		"blocking": {func(e core.Event) *core.Settle {
			return &core.Settle{Dead: []core.Death{{ID: e.ID, From: e.Found(), Blocking: true}}}
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
		settle := &core.Settle{Park: []core.Park{{ID: id, From: event.Found()}}}
		if undo == check.Redrive {
			settle = &core.Settle{Dead: []core.Death{{ID: id, From: event.Found()}}}
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
	d.settle(&core.Settle{Park: []core.Park{{ID: id, From: first.Found()}}})
	parked := d.found(id)
	d.now += time.Hour
	d.settle(&core.Settle{Park: []core.Park{{ID: id, From: parked.Found()}}})
	if again := d.found(id); again.At != parked.At {
		t.Errorf("parked since %s, and parked again since %s", parked.At, again.At)
	}
}

// TestALaneThatCrashesItsOwners counts, until its floor moves; what they died with stays marked until it is settled.
func TestALaneThatCrashesItsOwners(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	event, other := d.id(), d.id()
	var taken []core.Acquired
	var token outbox.ID
	for range 3 {
		token, taken = d.acquire(d.id(), 0)
		held, err := d.Note(t.Context(), core.Tenure{Lane: 0, Token: token}, event, false)
		d.must(err)
		if !held {
			t.Fatal("the lane is lost")
		}
		d.now += lease + 1
	}
	if taken[0] != (core.Acquired{Lane: 0, Crashed: true, CrashCount: 2, NotedEvent: event, NotedCount: 2}) {
		t.Errorf("took %+v", taken)
	}
	tenure := core.Tenure{Lane: 0, Token: token}
	_, err := d.Heartbeat(t.Context(), core.Heartbeat{
		Relay: d.id(), Lease: lease, Lanes: []core.Renewal{{Tenure: tenure, Floor: 5, Calm: true}},
	})
	d.must(err)
	_, err = d.Heartbeat(t.Context(), core.Heartbeat{
		Relay: d.id(), Lease: lease, Lanes: []core.Renewal{{Tenure: tenure, Floor: 3}},
	})
	d.must(err)
	_, err = d.Heartbeat(t.Context(), core.Heartbeat{
		Relay: d.id(), Lease: lease, Incarnation: "another", Lanes: []core.Renewal{{Tenure: tenure, Floor: 9}},
	})
	d.must(err)
	if lane := d.Lanes()[0]; lane.Floor != 5 || lane.CrashCount != 0 || lane.MarkedCount != 2 {
		t.Errorf("the lane is %+v", lane)
	}
	_, err = d.Note(t.Context(), tenure, other, false)
	d.must(err)
	if lane := d.Lanes()[0]; lane.MarkedEvent != event || lane.MarkedCount != 2 { // until it is settled
		t.Errorf("the lane is %+v", lane)
	}
	d.settle(&core.Settle{Lanes: []core.Tenure{tenure}, ClearNotes: []core.Tenure{tenure}})
	if lane := d.Lanes()[0]; lane.MarkedEvent != (outbox.ID{}) {
		t.Errorf("the note was not cleared: %+v", lane)
	}
	d.must(d.Release(t.Context(), core.Release{Tokens: []outbox.ID{token}}))
	if _, taken := d.acquire(d.id(), 0); len(taken) != 1 || taken[0].Crashed {
		t.Errorf("after a release: %+v", taken)
	}
	if held, _ := d.Note(t.Context(), tenure, event, false); held {
		t.Error("a note with a token that was given back")
	}
}

// TestACrashCountsAgainstAnEventOnlyIfItsOwnerMarkedIt: one that found the marker of another and crashed before
// it marked anything itself did not crash because of that event.
func TestACrashCountsAgainstAnEventOnlyIfItsOwnerMarkedIt(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	event := d.id()
	token, _ := d.acquire(d.id(), 0)
	_, err := d.Note(t.Context(), core.Tenure{Lane: 0, Token: token}, event, false)
	d.must(err)
	for want := range 3 {
		d.now += lease + 1
		_, taken := d.acquire(d.id(), 0)
		if taken[0] != (core.Acquired{Lane: 0, Crashed: true, CrashCount: want + 1, NotedEvent: event, NotedCount: 1}) {
			t.Errorf("take-over %d: %+v", want+1, taken)
		}
	}
}

// TestAnOwnerThatOutlivesTheMarkedEventSpeaksForIt: once for every publish that was answered.
func TestAnOwnerThatOutlivesTheMarkedEventSpeaksForIt(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	event := d.id()
	note := func(token, event outbox.ID, outlived bool) {
		_, err := d.Note(t.Context(), core.Tenure{Lane: 0, Token: token}, event, outlived)
		d.must(err)
	}
	token, taken := d.acquire(d.id(), 0)
	for range 2 {
		note(token, event, false)
		d.now += lease + 1
		token, taken = d.acquire(d.id(), 0)
	}
	if taken[0].NotedCount != 2 {
		t.Fatalf("two have died with it: %+v", taken)
	}
	for _, want := range []int{1, 0} {
		note(token, event, false)
		note(token, outbox.ID{}, false) // it was not sent
		note(token, event, false)
		note(token, outbox.ID{}, true)
		note(token, outbox.ID{}, true) // told twice, it counts once
		if lane := d.Lanes()[0]; lane.MarkedCount != want || (lane.MarkedEvent == event) != (want > 0) {
			t.Errorf("want %d deaths, the lane is %+v", want, lane)
		}
	}
}

// TestHeldRowsAreReadByAggregate, in order, with payloads only where they may be sent.
func TestHeldRowsAreReadByAggregate(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	ids := d.emit("a", "a", "a", "a", "ab")
	d.settle(&core.Settle{
		Retry: []core.Retry{{ID: ids[0], Attempts: 2, Delay: time.Minute, Error: "no"}, {ID: ids[4], Attempts: 1}},
		Wait:  ids[1:2], Park: []core.Park{{ID: ids[2]}}, Dead: []core.Death{{ID: ids[3], Blocking: true}},
	})
	rows, err := d.HeldRows(t.Context(),
		[]core.HeldAsk{
			{Lane: 0, Aggregate: core.Aggregate{Namespace: "default", Type: "order", ID: "a"}, Types: []string{"placed"}},
		}, 10)
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
	due, err := d.DueKeys(t.Context(), core.DueKeys{Lanes: []core.DueLane{{Lane: 0}}, Limit: 10})
	d.must(err)
	if len(due.Keys) != 1 || due.Keys[0].Aggregate.ID != "ab" {
		t.Errorf("due: %+v", due)
	}
	d.now += time.Minute
	if due, _ = d.DueKeys(t.Context(), core.DueKeys{Lanes: []core.DueLane{{Lane: 0}}, Limit: 10}); len(due.Keys) != 2 {
		t.Errorf("due a minute later: %+v", due)
	}
	keys, err := d.HeldKeys(t.Context(), []int16{0, 1})
	d.must(err)
	if len(keys.Keys) != 2 || keys.Keys[0].Aggregate.ID != "a" || keys.Keys[0].State != core.Retrying ||
		keys.Keys[1].Aggregate.ID != "ab" {
		t.Errorf("held: %+v", keys)
	}
	if old, _ := d.OldParked(t.Context(), core.OldParked{
		Lanes: []int16{0}, Age: time.Second, Limit: 10,
	}); len(old.Events) != 1 || old.Events[0].ID != ids[2] || old.Events[0].Payload != nil {
		t.Errorf("old parked: %+v", old)
	}
	if old, _ := d.OldParked(t.Context(), core.OldParked{Lanes: []int16{0}, Age: time.Hour, Limit: 10}); len(old.Events) !=
		0 {
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
	d.settle(&core.Settle{Park: []core.Park{{ID: known.ID}, {ID: unknown.ID}, {ID: other.ID}}})
	token, _ := d.acquire(d.id(), 0)
	d.must(d.Unpark(t.Context(), core.Unpark{
		Lanes: []core.Tenure{{Lane: 0, Token: token}, {Lane: 1, Token: d.id()}}, Types: []string{"placed"},
	}))
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
			{ID: head.ID, Blocking: true, Attempts: 4, Reason: "rejected"}, {ID: other.ID, Blocking: true, Reason: "rejected"},
		},
		Wait: []outbox.ID{follower.ID, second.ID, paid.ID, waiting.ID}, Park: []core.Park{{ID: parked.ID}},
	})
	d.operate(check.Redrive, head.ID)
	wantState(d, head.ID, core.Retrying)
	wantState(d, follower.ID, core.Waiting)
	if event, _ := d.Event(head.ID); event.Attempts != 0 {
		t.Errorf("redriven with %d attempts", event.Attempts)
	}
	redriven := d.found(head.ID)
	d.settle(&core.Settle{Dead: []core.Death{{ID: head.ID, From: redriven.Found(), Blocking: true, Reason: "rejected"}}})
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
	die := &core.Settle{Dead: []core.Death{{ID: ids[0], Reason: "rejected"}, {ID: ids[1], Reason: "rejected"}}}
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
		Dead: []core.Death{{ID: ids[0], Blocking: true, Reason: "rejected"}}, Wait: ids[1:2], Published: ids[2:],
	})
	d.operate(check.Skip, ids[0])
	d.settle(&core.Settle{Published: ids[1:2]})
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
