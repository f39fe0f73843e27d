package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Held events count against the bound of events in memory as well.
func TestHeldEventsInMemory(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	older := p.relay(t, registry{}, nil)
	for range 20 {
		for aggregate := range 200 {
			p.emit(t, "0", fmt.Sprint(aggregate), "a")
		}
	}
	older.pass(10 * time.Second) // all are parked
	older.core.Stop(older.now)
	older.pass(time.Second)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
	most := 0
	for range 400 {
		r.pass(10 * time.Millisecond)
		most = max(most, r.core.Counts().InFlight)
	}
	if bound := 400 + 64*32; most > bound { // MaxInFlight and one look
		t.Errorf("%d events in memory, want %d at most", most, bound)
	}
}

// An event that is larger than the memory for events is retried, and so are all others after it.
func TestRetryOfALargeEvent(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(c *core.Config) { c.MaxBytes = 4096 })
	refuse := true
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		if refuse {
			return core.Outcome{Class: core.Rejected}, true
		}
		return core.Outcome{}, true
	}
	r.pass(time.Second)
	tx := p.store.Begin()
	event := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "large"}, Payload: make([]byte, 8192),
	}
	if _, err := tx.Emit(event); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.pass(100 * time.Millisecond)
	if state := p.state(t, event.ID); state != core.Retrying {
		t.Fatalf("the event is in state %d", state)
	}
	refuse = false
	r.pass(20 * time.Second)
	if state := p.state(t, event.ID); state != core.Published {
		t.Errorf("the event is in state %d 20 seconds later", state)
	}
}
