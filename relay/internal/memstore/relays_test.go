package memstore_test

import (
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// note marks an event of lane 0.
func (d *db) note(owner core.Owner, token, event outbox.ID, outlived bool) bool {
	d.t.Helper()
	held, err := d.Note(d.t.Context(), core.Note{
		Owner: owner, Tenure: core.Tenure{Lane: 0, Token: token}, Event: event, Outlived: outlived,
	})
	d.must(err)
	return held
}

// TestALaneThatCrashesItsOwners counts, until it is calm; what they died with stays marked until it is settled.
func TestALaneThatCrashesItsOwners(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	event, other := d.id(), d.id()
	for range 2 {
		owner := d.register()
		token, _ := d.acquire(owner, 0)
		if !d.note(owner, token, event, false) {
			t.Fatal("the lane is lost")
		}
		d.crash(owner)
	}
	owner := d.register()
	token, taken := d.acquire(owner, 0)
	if taken[0] != (core.Acquired{Lane: 0, Crashed: true, CrashCount: 2, NotedEvent: event, NotedCount: 2}) {
		t.Errorf("took %+v", taken)
	}
	tenure := core.Tenure{Lane: 0, Token: token}
	d.note(owner, token, other, false)
	if lane := d.Lanes()[0]; lane.MarkedEvent != event || lane.MarkedCount != 2 { // until it is settled
		t.Errorf("the lane is %+v", lane)
	}
	d.heartbeat(core.Heartbeat{Owner: owner, Lanes: []core.Progress{{Tenure: tenure, Floor: 5, Calm: true}}})
	d.crash(owner)
	if lane := d.Lanes()[0]; lane.Floor != 5 || lane.CrashCount != 1 || lane.MarkedCount != 1 {
		t.Errorf("after a calm time the lane is %+v", lane)
	}
	owner = d.register()
	tenure.Token, _ = d.acquire(owner, 0)
	d.heartbeat(core.Heartbeat{Owner: owner, Incarnation: "another", Lanes: []core.Progress{{Tenure: tenure, Floor: 9}}})
	d.settle(&core.Settle{Owner: owner, Lanes: []int16{0}, ClearNotes: []int16{0}})
	if lane := d.Lanes()[0]; lane.MarkedEvent != (outbox.ID{}) || lane.CrashCount != 0 {
		t.Errorf("the note was not cleared: %+v", lane)
	}
	d.must(d.Release(t.Context(), core.Release{Owner: owner, Lanes: []core.Progress{{Tenure: tenure, Floor: 3}}}))
	if _, taken := d.acquire(d.register(), 0); len(taken) != 1 || taken[0] != (core.Acquired{Lane: 0, Floor: 5}) {
		t.Errorf("after a release: %+v", taken)
	}
	if d.note(owner, tenure.Token, event, false) {
		t.Error("a note about a lane that was given back")
	}
}

// TestARelayThatEnds frees its lanes: those of an acquisition whose answer never came, or all of them.
func TestARelayThatEnds(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	owner := d.register()
	unknown, _ := d.acquire(owner, 0)
	d.acquire(owner, 1)
	d.must(d.Release(t.Context(), core.Release{Owner: owner, Tokens: []outbox.ID{unknown}}))
	if answer := d.heartbeat(core.Heartbeat{Owner: owner}); !slices.Equal(answer.Held, []int16{1}) {
		t.Errorf("it holds %v", answer.Held)
	}
	d.must(d.Release(t.Context(), core.Release{Owner: owner, End: true}))
	if answer := d.heartbeat(core.Heartbeat{Owner: owner}); !answer.Ended || len(answer.Held) > 0 {
		t.Errorf("ended %t, and it holds %v", answer.Ended, answer.Held)
	}
	if _, taken := d.acquire(d.register(), 0, 1); len(taken) != 2 || taken[0].Crashed || taken[1].CrashCount != 0 {
		t.Errorf("took %+v", taken)
	}
}

// TestDeathsThatAreNotCounted: who was out of touch itself counts nobody's.
func TestDeathsThatAreNotCounted(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	owner := d.register()
	token, _ := d.acquire(owner, 0)
	d.note(owner, token, d.id(), false)
	d.ExpireRelay(owner.Relay)
	if ended, err := d.EndExpired(t.Context(), core.EndExpired{Max: 8, Away: true}); err != nil || len(ended) != 1 {
		t.Fatalf("ended %v, %v", ended, err)
	}
	if lane := d.Lanes()[0]; lane.Owner != (outbox.ID{}) || !lane.Crashed || lane.CrashCount+lane.MarkedCount != 0 {
		t.Errorf("the lane is %+v", lane)
	}
}

// TestABeatThatComesLate is not the newest.
func TestABeatThatComesLate(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	owner := d.register()
	d.heartbeat(core.Heartbeat{Owner: owner})
	d.now += 2 * lease
	late := core.Heartbeat{Owner: owner, Number: 1, Lease: lease}
	_, err := d.Heartbeat(t.Context(), late)
	d.must(err)
	ended, err := d.EndExpired(t.Context(), core.EndExpired{Max: 8})
	d.must(err)
	if !slices.Contains(ended, owner.Relay) {
		t.Error("a beat of long ago keeps the relay alive")
	}
}

// TestACrashCountsAgainstAnEventOnlyIfItsOwnerMarkedIt: one that found the marker of another and crashed before
// it marked anything itself did not crash because of that event.
func TestACrashCountsAgainstAnEventOnlyIfItsOwnerMarkedIt(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	event := d.id()
	owner := d.register()
	token, _ := d.acquire(owner, 0)
	d.note(owner, token, event, false)
	for want := range 3 {
		d.crash(owner)
		owner = d.register()
		_, taken := d.acquire(owner, 0)
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
	owner := d.register()
	token, taken := d.acquire(owner, 0)
	for range 2 {
		d.note(owner, token, event, false)
		d.crash(owner)
		owner = d.register()
		token, taken = d.acquire(owner, 0)
	}
	if taken[0].NotedCount != 2 {
		t.Fatalf("two have died with it: %+v", taken)
	}
	for _, want := range []int{1, 0} {
		d.note(owner, token, event, false)
		d.note(owner, token, outbox.ID{}, false) // it was not sent
		d.note(owner, token, event, false)
		d.note(owner, token, outbox.ID{}, true)
		d.note(owner, token, outbox.ID{}, true) // told twice, it counts once
		if lane := d.Lanes()[0]; lane.MarkedCount != want || (lane.MarkedEvent == event) != (want > 0) {
			t.Errorf("want %d deaths, the lane is %+v", want, lane)
		}
	}
}
