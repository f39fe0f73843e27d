package core_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// What waits behind an event that died under skip goes on, also when a read that is older than the
// settle is still under way.
func TestFollowerOfASkippedEvent(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: false}}, nil)
	hang := true
	var bad outbox.ID
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Event.ID == bad {
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, !hang
		}
		return core.Outcome{}, true
	}
	r.pass(time.Second)
	bad = p.emit(t, "0", "one", "a")
	follower := p.emit(t, "0", "one", "a")
	r.pass(time.Second) // the first is in flight, the second behind it
	r.keep[core.OpRead] = true
	r.pass(200 * time.Millisecond) // a read is under way
	hang = false
	r.pass(50 * time.Millisecond) // the first is dead, the second is looked at
	r.keep[core.OpRead] = false
	r.tellKept()
	r.pass(10 * time.Second)
	if state := p.state(t, bad); state != core.Dead {
		t.Fatalf("the first event is in state %d", state)
	}
	if state := p.state(t, follower); state != core.Published {
		t.Errorf("the follower is in state %d ten seconds later", state)
	}
}

// What an operator redrives is met, however many retries of the lane are due and cannot go.
func TestRedriveBehindBlockedRetries(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	older := p.relay(t, registry{}, nil)
	var blocked []outbox.ID
	for range 20 {
		blocked = append(blocked, p.emit(t, "0", "blocked", "a"))
	}
	older.pass(2 * time.Second) // all are parked
	older.core.Stop(older.now)
	older.pass(time.Second)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	other := p.emit(t, "0", "other", "a")
	refuse := map[outbox.ID]bool{blocked[0]: true, other: true}
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if refuse[publish.Event.ID] {
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		}
		return core.Outcome{}, true
	}
	r.pass(5 * time.Second)
	for _, id := range []outbox.ID{blocked[0], other} {
		if state := p.state(t, id); state != core.DeadBlocking {
			t.Fatalf("event %s is in state %d", id, state)
		}
	}
	clear(refuse)
	for _, id := range []outbox.ID{other, blocked[0]} {
		if _, err := p.store.Operate(check.Redrive, memstore.Order{Action: p.id(), Actor: "somebody", Reason: "fixed"},
			id); err != nil {
			t.Fatal(err)
		}
		r.pass(10 * time.Second)
		if state := p.state(t, id); state != core.Published {
			t.Errorf("event %s is in state %d ten seconds after its redrive", id, state)
		}
	}
}

// A lane that was lost and won again while an event of it was in flight: what is held of that event's line
// goes on when the old publish is answered.
func TestHoldBehindAnOldPublish(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	hang := false
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		return core.Outcome{}, !hang && r.now >= publish.DecidedAt+50*time.Millisecond
	}
	r.pass(time.Second)
	for range 20 { // so that the broker is known to be slow
		p.emit(t, "0", "another", "a")
	}
	r.pass(10 * time.Second)
	hang = true
	var last outbox.ID
	for range 130 { // more than a line has in memory: the last ones wait in the database
		last = p.emit(t, "0", "one", "a")
	}
	r.pass(time.Second)
	if state := p.state(t, last); state != core.Waiting {
		t.Fatalf("the last event is in state %d, %+v", state, r.core.Counts())
	}
	// Another relay has the lane for a moment.
	p.store.FreeLane(0)
	rival := core.Acquire{Owner: p.rival(t), Tenure: p.id(), Lanes: []int16{0}, Max: 1}
	if taken, err := p.store.Acquire(t.Context(), rival); err != nil || len(taken.Lanes) != 1 {
		t.Fatal(taken, err)
	}
	r.pass(100 * time.Millisecond)
	if err := p.store.Release(t.Context(), core.Release{Owner: rival.Owner, End: true}); err != nil {
		t.Fatal(err)
	}
	r.pass(35 * time.Second) // won again, with that still in flight after a lease
	if lanes := r.core.Counts().Lanes; lanes != 1 {
		t.Fatalf("%d lanes", lanes)
	}
	hang = false
	r.pass(20 * time.Second)
	if state := p.state(t, last); state != core.Published {
		t.Errorf("the last event is in state %d 20 seconds after the old publish was answered", state)
	}
}
