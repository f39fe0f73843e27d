package core_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A look that found nothing held does not end a hold when something was put behind it since the look began: what
// comes next would pass that.
func TestALookThatIsOlderThanAChangeEndsNoHold(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Event.Attempts == 0 && len(r.sent) == 1 {
			return core.Outcome{Class: core.Rejected}, true
		}
		r.keep[core.OpHeldRows] = true // the look that follows finds nothing
		return core.Outcome{}, true
	}
	first := p.emit(t, "0", "one", "a")
	r.pass(5 * time.Second)
	second := p.emit(t, "0", "one", "a")
	r.pass(time.Second)
	if state := p.state(t, second); len(r.kept) != 1 || len(r.sent) != 2 || state != core.Waiting {
		t.Fatalf("%d looks are under way, %d were sent, and the second event is in state %d: this test does not test",
			len(r.kept), len(r.sent), state)
	}
	third := p.emit(t, "0", "one", "a")
	r.keep[core.OpHeldRows] = false
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, true }
	r.tellKept()
	r.pass(5 * time.Second)
	if want := []outbox.ID{first, first, second, third}; !slices.Equal(r.sent, want) {
		t.Errorf("out of order: sent %v, want %v", r.sent, want)
	}
}

// When a read finds that a writer has ended and does not come to all lanes, the others go back to where nothing can
// have appeared: nobody asks about that writer again.
func TestALaneThatAReadDidNotReachGoesBack(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	const most = 10_000
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) { c.MaxBytes = most })
	r.pass(time.Second)
	tx := p.store.Begin()
	late := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "1", Type: "t", ID: "one"}, Payload: []byte("{}"),
	}
	if _, err := tx.Emit(late); err != nil {
		t.Fatal(err)
	}
	seen := p.emit(t, "1", "two", "a")
	r.pass(time.Second) // the cursor passes the open writer
	if state := p.state(t, seen); state != core.Published {
		t.Fatalf("an event beside an open writer is in state %d: this test does not test", state)
	}
	large := p.store.Begin() // in the lane that is read first, and all that may be read
	event := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "three"},
		Payload: bytes.Repeat([]byte(" "), most),
	}
	if _, err := large.Emit(event); err != nil {
		t.Fatal(err)
	}
	for _, ends := range []interface{ Commit() error }{large, tx} {
		if err := ends.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	r.pass(time.Second)
	next := p.emit(t, "1", "one", "a")
	r.pass(time.Second)
	if want := []outbox.ID{seen, event.ID, late.ID, next}; !slices.Equal(r.sent, want) {
		t.Errorf("what the writer left was passed: sent %v, want %v", r.sent, want)
	}
}
