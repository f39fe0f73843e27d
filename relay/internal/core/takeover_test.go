package core_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A settle that is refused because one of its lanes is lost is sent again for the others.
func TestSettleOfALaneThatIsLost(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	hang := true
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, !hang }
	r.pass(time.Second)
	lost, kept := p.emit(t, "0", "one", "a"), p.emit(t, "1", "two", "a")
	r.pass(time.Second)
	if len(r.flying) != 2 {
		t.Fatalf("%d publishes are in flight", len(r.flying))
	}
	p.store.FreeLane(0)
	taken, err := p.store.Acquire(t.Context(), core.Acquire{
		Owner: p.rival(t), Tenure: p.id(), Lanes: []int16{0}, Max: 1,
	})
	if err != nil || len(taken.Lanes) != 1 {
		t.Fatalf("taken %+v, %v", taken, err)
	}
	hang = false
	r.pass(5 * time.Second)
	if counts := r.core.Counts(); counts.StaleSettles != 1 || counts.Lanes != 1 {
		t.Errorf("%+v: this test does not test", counts)
	}
	if state := p.state(t, kept); state != core.Published {
		t.Errorf("the event of the lane that is held is in state %d", state)
	}
	if state := p.state(t, lost); state != core.Ready {
		t.Errorf("the event of the lane that is lost is in state %d", state)
	}
}

// A new owner declares nothing dead while the one before it can have the event in flight: it could arrive
// after its death.
func TestNothingDiesRightAfterATakeOver(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]core.Outcome{
		"refused for good": {Class: core.Terminal, Reason: "rejected"}, "out of attempts": {Class: core.Rejected},
	} {
		p := newPlace(1)
		routes := registry{"a": {Topic: "topic", MaxAttempts: 1}}
		event := p.emit(t, "0", "one", "a")
		dies := p.relay(t, routes, nil)
		dies.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
		dies.pass(time.Second)
		p.now += time.Minute // the lease expires
		r := p.relay(t, routes, nil)
		r.answer = func(*core.Publish) (core.Outcome, bool) { return outcome, true }
		r.pass(4 * time.Second) // less than a deadline
		if state := p.state(t, event); len(r.sent) == 0 || state != core.Retrying {
			t.Errorf("%s: sent %d times, and the event is in state %d before the deadline", name, len(r.sent), state)
		}
		r.pass(10 * time.Second)
		if state := p.state(t, event); state != core.Dead {
			t.Errorf("%s: the event is in state %d after the deadline", name, state)
		}
	}
}

// What is known of one server is not believed of the next, also when no connection was seen to break: numbers
// may have been drawn anew below the watermark. The lanes are given up, and acquired there.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.pass(2 * time.Second)
	tokens := [2]any{p.store.Lanes()[0].Token, p.store.Lanes()[1].Token}
	p.store.Promote(p.store.Copy())
	r.pass(5 * time.Second)
	for i, lane := range p.store.Lanes() {
		if lane.Token == tokens[i] {
			t.Errorf("lane %d is held as before", i)
		}
	}
	event := p.emit(t, "0", "one", "a")
	r.pass(2 * time.Second)
	if state := p.state(t, event); state != core.Published {
		t.Errorf("the next event is in state %d", state)
	}
}

// Nothing is sent that could be in flight still when the lease ends, whether or not it is renewed by then.
func TestNoPublishAtTheEndOfALease(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.pass(time.Second)
	r.keep[core.OpHeartbeat] = true
	r.pass(20 * time.Second)
	early := p.emit(t, "0", "one", "a")
	r.pass(time.Second)
	if state := p.state(t, early); state != core.Published {
		t.Errorf("with time enough an event is in state %d", state)
	}
	r.pass(4 * time.Second) // less than a deadline is left of the lease
	p.emit(t, "0", "two", "a")
	r.pass(2 * time.Second)
	if lanes := r.core.Counts().Lanes; lanes != 1 || len(r.sent) != 1 {
		t.Errorf("%d lanes, %d events were sent", lanes, len(r.sent))
	}
}

// A lease counts from before its renewal was sent: the database may have written it down then, however late its
// answer came.
func TestALeaseBeginsBeforeItsRenewalIsSent(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.pass(time.Second)
	r.keep[core.OpHeartbeat] = true
	r.pass(10 * time.Second)
	r.tellKept()
	renewed := r.now         // by now it is time to renew
	r.pass(15 * time.Second) // the answer takes as long
	r.tellKept()
	r.pass(renewed + 23*time.Second - r.now) // a deadline and a margin are left of the lease, and a second
	early := p.emit(t, "0", "one", "a")
	r.pass(500 * time.Millisecond)
	if state := p.state(t, early); state != core.Published {
		t.Errorf("with time enough an event is in state %d: this test does not test", state)
	}
	r.pass(time.Second)
	p.emit(t, "0", "two", "a")
	r.pass(time.Second)
	if lanes := r.core.Counts().Lanes; lanes != 1 || len(r.sent) != 1 {
		t.Errorf("%d lanes, and %d events were sent: one was sent at the end of its lease", lanes, len(r.sent))
	}
}
