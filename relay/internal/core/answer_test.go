package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// disorderly answers a read with its lanes in another order.
type disorderly struct {
	core.Store
	on bool
}

func (d *disorderly) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	answer, err := d.Store.Read(ctx, read)
	if d.on {
		slices.SortStableFunc(answer.Events, func(a, b core.Event) int { return int(b.Lane) - int(a.Lane) })
	}
	return answer, err
}

// An answer out of order may be refused, but then it moves no bound.
func TestAnswerOutOfOrder(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	store := &disorderly{Store: p.store, on: true}
	r.via = store
	r.pass(time.Second)
	r.keep[core.OpRead] = true
	r.pass(200 * time.Millisecond) // a read is under way
	events := []outbox.ID{p.emit(t, "0", "one", "a"), p.emit(t, "1", "two", "a")}
	r.pass(200 * time.Millisecond) // a fence that is later than the events
	r.tellKept()
	r.pass(200 * time.Millisecond) // a read that brings both
	r.tellKept()
	r.keep[core.OpRead] = false
	store.on = false
	r.pass(5 * time.Second)
	for _, id := range events {
		if state := p.state(t, id); state != core.Published {
			t.Errorf("event %s is in state %d", id, state)
		}
	}
}

// choosy cannot settle one of the events.
type choosy struct {
	core.Store
	never outbox.ID
}

func (c *choosy) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	for _, death := range settle.Dead {
		if death.ID == c.never {
			return core.SettleAnswer{}, errors.New("a constraint says no")
		}
	}
	return c.Store.Settle(ctx, settle)
}

// One event that the database does not let settle does not keep all others from it.
func TestSettleThatIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	bad := p.emit(t, "0", "one", "a")
	r.via = &choosy{Store: p.store, never: bad}
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Event.ID == bad {
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		}
		return core.Outcome{}, true
	}
	r.pass(time.Second)
	good := p.emit(t, "1", "two", "a")
	r.pass(time.Minute)
	if state := p.state(t, good); state != core.Published {
		t.Errorf("the other event is in state %d a minute later, %d settles", state, r.calls[core.OpSettle])
	}
}

// A lane with an event that the database does not let settle can still be given back.
func TestDrainOfALaneWithARefusedSettle(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	routes := registry{"a": {Topic: "topic"}}
	r := p.relay(t, routes, nil)
	bad := []outbox.ID{p.emit(t, "0", "one", "a"), p.emit(t, "1", "one", "a")}
	refused := func(id outbox.ID) bool { return slices.Contains(bad, id) }
	r.via = &choosy{Store: &choosy{Store: p.store, never: bad[0]}, never: bad[1]}
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if refused(publish.Event.ID) {
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		}
		return core.Outcome{}, true
	}
	r.pass(5 * time.Second)
	other := p.relay(t, routes, nil) // one of the two lanes is its fair share
	other.answer = func(publish *core.Publish) (core.Outcome, bool) { return core.Outcome{}, !refused(publish.Event.ID) }
	events := []outbox.ID{p.emit(t, "0", "two", "a"), p.emit(t, "1", "two", "a")}
	for range 1200 {
		p.now += 50 * time.Millisecond
		r.settle()
		other.settle()
	}
	events = append(events, p.emit(t, "0", "three", "a"), p.emit(t, "1", "three", "a"))
	for range 200 {
		p.now += 50 * time.Millisecond
		r.settle()
		other.settle()
	}
	for _, id := range events {
		if state := p.state(t, id); state != core.Published {
			t.Errorf("event %s is in state %d; %d and %d lanes", id, state, r.core.Counts().Lanes, other.core.Counts().Lanes)
		}
	}
}

// flaky fails the next settles, before they are applied.
type flaky struct {
	core.Store
	next int
}

func (f *flaky) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	if f.next > 0 {
		f.next--
		return core.SettleAnswer{}, errors.New("the connection is lost")
	}
	return f.Store.Settle(ctx, settle)
}

// A stop settles what the broker has acknowledged, also when the first settles of it failed.
func TestStopAfterAFailedSettle(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	store := &flaky{Store: p.store}
	r.via = store
	hang := true
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, !hang }
	r.pass(time.Second)
	event := p.emit(t, "0", "one", "a")
	r.pass(time.Second)
	hang, store.next = false, 2
	r.settle() // acknowledged, and not settled
	r.core.Stop(r.now)
	r.pass(5 * time.Second)
	if state := p.state(t, event); !r.stopped || state != core.Published {
		t.Errorf("stopped %t, and the event that was acknowledged is in state %d", r.stopped, state)
	}
}
