package core_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A server in recovery is asked again after a pause, not as fast as it answers.
func TestFenceOfAStandby(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.pass(time.Second)
	p.store.SetStandby(true)
	r.now += 100 * time.Millisecond // the next fence is due
	before := r.calls[core.OpFence]
	for range 50 {
		r.now += time.Microsecond
		r.step()
	}
	if asked := r.calls[core.OpFence] - before; asked > 5 {
		t.Errorf("%d fences in 50 microseconds, %d alarms", asked, len(r.alarms))
	}
}

// A standby's numbers run ahead of what it shows, so nothing is read from it. Then the primary is back, and all
// goes on.
func TestNothingIsReadFromAStandby(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.pass(time.Second)
	p.store.SetStandby(true)
	r.pass(500 * time.Millisecond) // a fence has shown it
	before := r.calls[core.OpRead]
	r.pass(5 * time.Second)
	if read := r.calls[core.OpRead] - before; read > 0 || before == 0 || len(r.alarms) == 0 {
		t.Errorf("%d reads, %d before, %d alarms", read, before, len(r.alarms))
	}
	p.store.SetStandby(false)
	event := p.emit(t, "0", "one", "a")
	r.pass(10 * time.Second)
	if state := p.state(t, event); state != core.Published {
		t.Errorf("with the primary back the event is in state %d", state)
	}
}
