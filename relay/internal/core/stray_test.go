package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// late is a store whose first acquisition is given up, and done when a release has been answered.
type late struct {
	core.Store
	take *core.Acquire
	done bool
}

func (s *late) Acquire(ctx context.Context, take core.Acquire) (core.AcquireAnswer, error) {
	if s.take == nil {
		s.take = &take
		return core.AcquireAnswer{}, errors.New("the statement is still on its way")
	}
	return s.Store.Acquire(ctx, take)
}

func (s *late) Release(ctx context.Context, give core.Release) error {
	err := s.Store.Release(ctx, give)
	if !s.done {
		s.done = true
		_, err = s.Store.Acquire(ctx, *s.take)
	}
	return err
}

// A lane that an acquisition took after it had been given up is given back: nobody else could take it.
func TestAnAcquisitionThatIsDoneLate(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	event := p.emit(t, "0", "one", "a")
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	store := &late{Store: p.store}
	r.via = store
	r.pass(10 * time.Second)
	if state := p.state(t, event); !store.done || state != core.Published {
		t.Errorf("done late: %t; the event is in state %d, the core has %d lanes", store.done, state, r.core.Counts().Lanes)
	}
}

// A lane that was released on the old primary is the relay's again on a standby that lags: it is given up there.
func TestALaneThatAFailoverGaveBack(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic"}}
	first := p.relay(t, routes, nil)
	first.pass(time.Second)
	standby := p.store.Copy()
	p.store.FreeLane(0) // and taken by nobody: the relay has no lanes, and so asks for no fence
	first.keep[core.OpAcquire] = true
	first.pass(3 * time.Second)
	if lanes := first.core.Counts().Lanes; lanes != 0 {
		t.Fatalf("%d lanes: this test does not test", lanes)
	}
	p.store.Promote(standby)
	event := p.emit(t, "0", "one", "a")
	first.keep = map[core.Op]bool{}
	first.tellKept()
	first.pass(10 * time.Second)
	if state := p.state(t, event); state != core.Published {
		t.Errorf("the event is in state %d, and the lane is owned by %s", state, p.store.Lanes()[0].Owner)
	}
}

// elsewhereOnce answers one look from a server that knows nothing of the relay.
type elsewhereOnce struct {
	core.Store
	on, done bool
}

func (s *elsewhereOnce) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	if s.on && beat.Number == 0 && !s.done {
		s.done = true
		return core.HeartbeatAnswer{Ended: true, Incarnation: elsewhere}, nil
	}
	return s.Store.Heartbeat(ctx, beat)
}

// One look that another server answers costs moments and counts as nobody's death.
func TestALookThatAnotherServerAnswers(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	store := &elsewhereOnce{Store: p.store}
	r.via = store
	r.pass(12 * time.Second)
	store.on = true
	r.pass(2 * time.Second)
	event := p.emit(t, "0", "one", "a")
	r.pass(3 * time.Second)
	lane := p.store.Lanes()[0]
	if state := p.state(t, event); !store.done || state != core.Published || lane.CrashCount > 0 {
		t.Errorf("answered elsewhere: %t; the event is in state %d, the lane is %+v", store.done, state, lane)
	}
}

// A restart of the server takes back neither how far a lane was nor that it was calm.
func TestARestartTakesNothingBack(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic"}}
	p.die(t, outbox.ID{}, 0)
	p.die(t, outbox.ID{}, 0)
	r := p.relay(t, routes, nil)
	for range 100 {
		p.emit(t, "0", "one", "a")
		r.pass(30 * time.Millisecond)
	}
	r.pass(3 * time.Hour)
	before := p.store.Status()[0]
	if before.Floor < 100 || before.CrashCount > 0 || p.store.Lanes()[0].CrashCount == 0 {
		t.Fatalf("%+v: this test does not test", before)
	}
	p.store.Restart()
	r.keep[core.OpFence] = true // so that the first beat after it is about the server before
	r.pass(5 * time.Second)
	if after := p.store.Status()[0]; after.Floor < before.Floor || after.CrashCount > 0 {
		t.Errorf("before: %+v, and after: %+v", before, after)
	}
	r.keep = map[core.Op]bool{}
	r.tellKept()
	r.pass(5 * time.Second)
	if after := p.store.Lanes()[0]; after.Floor < before.Floor || after.CrashCount > 0 {
		t.Errorf("before: %+v, and in the lane's row: %+v", before, after)
	}
}
