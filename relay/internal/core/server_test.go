package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// A standby that lacks the last settles and floors becomes the primary. Its events are published in order, also those
// below the floors that the relay knows from the old primary.
func TestALaggingStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	for _, down := range []time.Duration{0, 5 * time.Second} { // behind a pooler no call fails
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(down, " ", seed), func(t *testing.T) {
				t.Parallel()
				failOver(t, down, seed)
			})
		}
	}
}

func failOver(t *testing.T, down time.Duration, seed uint64) {
	t.Helper()
	p := newPlace(1)
	away := false
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) {
		c.FencePeriod, c.Poll, c.Deadline = 250*time.Millisecond, 500*time.Millisecond, 10*time.Second
		c.Random = func() uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return seed >> 1 }
	})
	r.via = &memstore.Faulty{Store: p.store, Plan: func(memstore.Operation) memstore.Fault {
		if away {
			return memstore.NotDone
		}
		return memstore.None
	}}
	r.pass(time.Second)
	standby := p.store.Copy()
	for i := range 500 {
		p.emit(t, "0", "other", "a")
		if i%20 == 0 {
			r.pass(50 * time.Millisecond)
		}
	}
	r.pass(11 * time.Second) // a renewal writes the floor
	if floor := p.store.Status()[0].Floor; floor < 400 {
		t.Fatalf("the floor is %d: this test does not test", floor)
	}
	away = down > 0
	r.pass(down)
	p.store.Promote(standby)
	away = false
	before := len(r.sent)
	var events []outbox.ID
	for i := range 1000 {
		if i%50 == 0 {
			events = append(events, p.emit(t, "0", "one", "a"))
		} else {
			p.emit(t, "0", "other", "a")
		}
		if i%5 == 0 {
			r.pass(5 * time.Millisecond)
		}
	}
	r.pass(time.Minute)
	sent := slices.DeleteFunc(slices.Clone(r.sent[before:]), func(id outbox.ID) bool {
		return !slices.Contains(events, id)
	})
	if !slices.Equal(sent, events) {
		t.Errorf("of %d events %d were sent, and in the order that they were written in: %t", len(events), len(sent),
			slices.Equal(slices.Sorted(slices.Values(places(sent, events))), places(sent, events)))
	}
	for _, alarm := range r.alarms {
		t.Errorf("alarm: %s", alarm)
	}
}

// places are where the sent events are among all.
func places(sent, events []outbox.ID) (at []int) {
	for _, id := range sent {
		at = append(at, slices.Index(events, id))
	}
	return at
}

// foreign is a store whose answers to one kind of call are those of another server.
type foreign struct {
	core.Store
	op    core.Op
	event core.Event // that only the other one has
	asked int
}

const elsewhere = "another server"

// is tells whether the other one answers this call.
func (f *foreign) is(op core.Op) bool {
	if f.op == op {
		f.asked++
	}
	return f.op == op
}

func (f *foreign) key() []core.HeldKey {
	return []core.HeldKey{{Aggregate: f.event.Aggregate, EventType: f.event.Type, State: core.Retrying}}
}

func (f *foreign) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	if f.is(core.OpRead) {
		return core.ReadAnswer{Events: []core.Event{f.event}, Seen: core.Seen{Incarnation: elsewhere}}, nil
	}
	return f.Store.Read(ctx, read)
}

func (f *foreign) HeldKeys(ctx context.Context, held core.HeldKeys) (core.KeysAnswer, error) {
	if f.is(core.OpHeldKeys) {
		return core.KeysAnswer{Keys: f.key(), Seen: core.Seen{Incarnation: elsewhere}}, nil
	}
	return f.Store.HeldKeys(ctx, held)
}

func (f *foreign) DueKeys(ctx context.Context, due core.DueKeys) (core.KeysAnswer, error) {
	if f.is(core.OpDueKeys) {
		return core.KeysAnswer{Keys: f.key(), Seen: core.Seen{Incarnation: elsewhere}}, nil
	}
	return f.Store.DueKeys(ctx, due)
}

func (f *foreign) HeldRows(ctx context.Context, held core.HeldRows) (core.RowsAnswer, error) {
	if f.is(core.OpHeldRows) {
		return core.RowsAnswer{Events: []core.Event{f.event}, Seen: core.Seen{Incarnation: elsewhere}}, nil
	}
	return f.Store.HeldRows(ctx, held)
}

func (f *foreign) OldParked(ctx context.Context, asked core.OldParked) (core.ParkedAnswer, error) {
	if f.is(core.OpOldParked) {
		old := f.event
		old.Type, old.State = "not known", core.Parked
		return core.ParkedAnswer{Events: []core.Event{old}, Seen: core.Seen{Incarnation: elsewhere}}, nil
	}
	return f.Store.OldParked(ctx, asked)
}

func (f *foreign) Sweep(ctx context.Context, sweep core.Sweep) (core.SweepAnswer, error) {
	if f.is(core.OpSweep) {
		return core.SweepAnswer{Found: []core.Floor{{Lane: 0, Seq: 1}}, Seen: core.Seen{Incarnation: elsewhere}}, nil
	}
	return f.Store.Sweep(ctx, sweep)
}

func (f *foreign) Acquire(ctx context.Context, take core.Acquire) (core.AcquireAnswer, error) {
	answer, err := f.Store.Acquire(ctx, take)
	if f.is(core.OpAcquire) {
		answer.Incarnation = elsewhere
		for i := range answer.Lanes {
			answer.Lanes[i].Floor = 1000
		}
	}
	return answer, err
}

// Settle writes down what the core decided about the event that it must not know.
func (f *foreign) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	if len(settle.Dead) > 0 {
		f.event.State = core.Dead
	}
	return f.Store.Settle(ctx, settle)
}

// No answer of a server that is not the fence's is used, whatever was asked.
func TestAnswersOfAnotherServerAreNotUsed(t *testing.T) {
	t.Parallel()
	for _, op := range []core.Op{
		core.OpRead, core.OpHeldKeys, core.OpDueKeys, core.OpHeldRows, core.OpOldParked, core.OpSweep, core.OpAcquire,
	} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			p := newPlace(1)
			r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) { c.SweepPeriod = 5 * time.Second })
			r.answer = func(publish *core.Publish) (core.Outcome, bool) {
				return core.Outcome{Class: core.Rejected}, len(r.sent) == 1 // the first one is held from then on
			}
			store := &foreign{Store: p.store, event: core.Event{
				ID: p.id(), Seq: 7, Type: "a", State: core.Retrying,
				Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "one"}, Payload: []byte("{}"),
			}}
			if op == core.OpAcquire || op == core.OpHeldKeys {
				store.op = op
			}
			r.via = store
			first := p.emit(t, "0", "one", "a")
			r.pass(500 * time.Millisecond)
			store.op = op
			r.pass(30 * time.Second)
			if store.asked == 0 {
				t.Fatal("this test does not test: nobody asked")
			}
			store.op = ""
			r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, true }
			r.pass(time.Minute)
			if slices.Contains(r.sent, store.event.ID) || store.event.State != core.Retrying || len(r.alarms) > 0 {
				t.Errorf("an event of another server was sent or died, or there are alarms: %v", r.alarms)
			}
			if state := p.state(t, first); state != core.Published {
				t.Errorf("the event of this server is in state %d", state)
			}
		})
	}
}

// nameless lists open transactions under other virtual ids than before.
type nameless struct {
	core.Store
	on bool
}

func (n *nameless) Fence(ctx context.Context) (core.Fence, error) {
	fence, err := n.Store.Fence(ctx)
	for i := range fence.Writers {
		if n.on {
			fence.Writers[i].VXID = "-1/" + fence.Writers[i].VXID
		}
	}
	return fence, err
}

// A transaction that has an id is the same one under whatever virtual id it is listed: the watermark does not pass it.
func TestAWriterIsKnownByItsTransaction(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	store := &nameless{Store: p.store}
	r.via = store
	r.pass(time.Second)
	late := p.store.Begin()
	event := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "one"}, Payload: []byte("{}"),
	}
	if _, err := late.Emit(event); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Second)
	store.on = true
	for range 50 {
		p.emit(t, "0", "other", "a")
		r.pass(100 * time.Millisecond)
	}
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	r.pass(5 * time.Second)
	if state := p.state(t, event.ID); state != core.Published {
		t.Errorf("the event of the open transaction is in state %d", state)
	}
}

// What a recovery under the same postmaster took back is not published: behind a pooler nothing else tells of it.
func TestWhatARecoveryTookBackIsNotPublished(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.pass(time.Second)
	r.keep[core.OpBarrier] = true
	gone := p.store.Begin()
	event := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "one"}, Payload: []byte("{}"),
	}
	if _, err := gone.Emit(event); err != nil {
		t.Fatal(err)
	}
	for fences := r.calls[core.OpFence]; r.calls[core.OpFence] == fences; { // the next one would make it durable
		r.pass(time.Millisecond)
	}
	r.keep[core.OpRead] = true
	if err := gone.CommitAsync(); err != nil {
		t.Fatal(err)
	}
	r.core.Bell(r.now)
	for len(r.kept) == 0 {
		r.pass(time.Millisecond) // until a read has shown it
	}
	p.store.Recover()
	r.keep = map[core.Op]bool{}
	r.tellKept()
	r.pass(10 * time.Second)
	if _, exists := p.store.Event(event.ID); exists || len(r.sent) > 0 {
		t.Errorf("there is a row: %t, and %d events were sent", exists, len(r.sent))
	}
	next := p.emit(t, "0", "one", "a")
	r.pass(5 * time.Second)
	if state := p.state(t, next); state != core.Published {
		t.Errorf("the next event is in state %d", state)
	}
}
