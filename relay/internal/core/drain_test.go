package core_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A read that is under way while its lane begins to drain brings rows that nobody takes: the floor with which
// the lane is given back must not pass them.
func TestFloorOfADrainedLane(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	hang := true
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, !hang }
	r.pass(time.Second)
	p.emit(t, "0", "first", "a")
	r.pass(time.Second) // it is in flight
	r.keep[core.OpRead] = true
	r.pass(200 * time.Millisecond) // a read that finds nothing new is under way
	missed := p.emit(t, "0", "second", "a")
	r.pass(200 * time.Millisecond) // a fence that is later than the second event
	r.tellKept()
	r.pass(200 * time.Millisecond) // a read that brings the second event is under way
	r.core.Stop(r.now)
	r.tellKept()
	r.settle()
	hang = false
	r.pass(time.Second)
	if !r.stopped {
		t.Fatal("the relay has not stopped")
	}
	event, _ := p.store.Event(missed)
	if floor := p.store.Status()[0].Floor; event.State == core.Ready && floor >= event.Seq {
		t.Errorf("the lane was given back with floor %d, and event %d is ready below it", floor, event.Seq)
	}
}
