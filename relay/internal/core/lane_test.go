package core_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// An event that is in another lane than its aggregate is parked, with an alarm, and nobody dies of it; others of the
// lane go on. Released, it is still there, and still not published.
func TestAnEventInAnotherLane(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	tx := p.store.Begin()
	stray := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "one"}, Payload: []byte("{}"),
		Stray: true,
	}
	if _, err := tx.Emit(stray); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	behind, other := p.emit(t, "0", "one", "a"), p.emit(t, "0", "two", "a")
	r.pass(5 * time.Second)
	if got := p.state(t, stray.ID); got != core.Parked || len(r.alarms) != 1 {
		t.Errorf("the event is in state %d, alarms %q", got, r.alarms)
	}
	if got := p.state(t, behind); got != core.Waiting {
		t.Errorf("the one behind it is in state %d", got)
	}
	if got := p.state(t, other); got != core.Published {
		t.Errorf("the other aggregate's is in state %d", got)
	}
	if _, err := p.store.Operate(check.Free, memstore.Order{Action: p.id(), Actor: "ann"}, stray.ID); err != nil {
		t.Fatal(err)
	}
	r.pass(10 * time.Minute)
	if got := p.state(t, stray.ID); got != core.Parked || len(r.sent) != 1 {
		t.Errorf("released, it is in state %d, and %d were sent", got, len(r.sent))
	}
}

// A read looks at a window of numbers, and goes on at once: what a long transaction leaves behind, and what an owner
// before has settled, is walked over piece by piece.
func TestReadsInWindows(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *place) func(){
		"above the floor of the owner before": func(t *testing.T, p *place) func() {
			t.Helper()
			return func() {}
		},
		"behind a writer that ends": func(t *testing.T, p *place) func() {
			t.Helper()
			tx := p.store.Begin()
			if _, err := tx.Emit(core.Event{
				ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "late"}, Payload: []byte("{}"),
			}); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(1)
			end := prepare(t, p)
			// Numbers that nobody wrote with: a thousand windows.
			gap := p.store.Begin()
			for range 10_000 {
				if _, err := gap.Draw(); err != nil {
					t.Fatal(err)
				}
			}
			gap.Rollback()
			events := []outbox.ID{p.emit(t, "0", "one", "a"), p.emit(t, "0", "one", "a"), p.emit(t, "0", "two", "a")}
			r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) { c.Window = 10 })
			r.pass(20 * time.Second)
			end()
			r.pass(20 * time.Second)
			for _, id := range events {
				if got := p.state(t, id); got != core.Published {
					t.Errorf("an event above many windows is in state %d", got)
				}
			}
			if open := p.store.Open(); open > 0 {
				t.Errorf("%d events are open", open)
			}
		})
	}
}

// Who has drawn a number, and has no transaction id yet, keeps the bounds where they are; what is far above them is
// read all the same.
func TestAWindowBehindADrawnNumber(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) { c.Window = 10 })
	r.pass(time.Second)
	drawn := p.store.Begin()
	number, err := drawn.Draw()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		p.emit(t, "0", "one", "a")
		if i%10 == 0 {
			r.pass(time.Second)
		}
	}
	r.pass(10 * time.Second)
	if open := p.store.Open(); open > 0 {
		t.Errorf("%d events wait for a transaction that has written nothing", open)
	}
	late := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "late"}, Payload: []byte("{}"),
	}
	if err := drawn.EmitAt(number, late); err != nil {
		t.Fatal(err)
	}
	if err := drawn.Commit(); err != nil {
		t.Fatal(err)
	}
	r.pass(10 * time.Second)
	if state := p.state(t, late.ID); state != core.Published {
		t.Errorf("its own event is in state %d", state)
	}
}
