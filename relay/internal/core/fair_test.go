package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// One aggregate whose publish hangs, at a broker that is fast otherwise, does not fill the memory of all.
func TestOneAggregateHangs(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		return core.Outcome{}, publish.Event.Aggregate.ID != "slow" || r.now >= publish.DecidedAt+4*time.Second
	}
	r.pass(time.Second)
	for range 1000 {
		p.emit(t, "0", "slow", "a")
	}
	r.pass(time.Second)
	other := p.emit(t, "1", "other", "a")
	r.pass(time.Second)
	if state := p.state(t, other); state != core.Published {
		t.Errorf("an event of another aggregate is in state %d a second later; %+v", state, r.core.Counts())
	}
}

// A topic that is down keeps no other topic in the one-at-a-time mode.
func TestCarefulDuringAnOutage(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "down", Block: true}, "b": {Topic: "up", Block: true}}
	p.emit(t, "0", "one", "a")
	down := func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Topic == "down" {
			return core.Outcome{Class: core.RouteFault, Detail: "the broker is down"}, true
		}
		return core.Outcome{}, true
	}
	for range 3 { // killed for some reason, three times
		r := p.relay(t, routes, nil)
		r.answer = down
		r.pass(5 * time.Second)
		p.now += time.Minute
	}
	r := p.relay(t, routes, nil)
	r.answer = down
	r.pass(time.Minute)
	for range 200 {
		p.emit(t, "0", "two", "b")
	}
	r.pass(2 * time.Minute)
	before := r.calls[core.OpNote]
	for range 100 {
		p.emit(t, "0", "two", "b")
	}
	r.pass(10 * time.Second)
	if notes := r.calls[core.OpNote] - before; notes > 50 {
		t.Errorf("%d notes for 100 events of the topic that works, three minutes and 200 events after the last crash", notes)
	}
}

// Several aggregates whose publishes hang, none of them with a long line, do not fill the memory of all.
func TestManyAggregatesHang(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		return core.Outcome{}, publish.Event.Aggregate.ID == "other" || r.now >= publish.DecidedAt+4*time.Second
	}
	r.pass(time.Second)
	for range 120 {
		for _, slow := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			p.emit(t, "0", slow, "a")
		}
	}
	r.pass(time.Second)
	other := p.emit(t, "1", "other", "a")
	r.pass(3 * time.Second)
	if state := p.state(t, other); state != core.Published {
		t.Errorf("an event of another aggregate is in state %d three seconds later; %+v", state, r.core.Counts())
	}
}

// A topic that is slow, and does answer, does not fill the memory of the others.
func TestSlowTopicBesideAFastOne(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "slow", Block: true}, "b": {Topic: "fast", Block: true}}, nil)
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		return core.Outcome{}, publish.Topic == "fast" || r.now >= publish.DecidedAt+2*time.Second
	}
	p.emit(t, "1", "other", "b")
	r.pass(time.Second)
	for i := range 2000 {
		p.emit(t, "0", fmt.Sprint(i), "a")
	}
	r.pass(5 * time.Second)
	fast := p.emit(t, "1", "other", "b")
	r.pass(5 * time.Second)
	if state := p.state(t, fast); state != core.Published {
		t.Errorf("an event of the fast topic is in state %d five seconds later; %+v", state, r.core.Counts())
	}
}

// A topic that this relay has not met waits no longer for the backlog of a slow one than a topic that it has.
func TestATopicThatWasNotMetYet(t *testing.T) {
	t.Parallel()
	for _, met := range []bool{true, false} {
		t.Run(fmt.Sprintf("met before: %t", met), func(t *testing.T) {
			t.Parallel()
			p := newPlace(4)
			if met {
				p.emit(t, "0", "first", "b")
			}
			for i := range 5000 {
				p.emit(t, fmt.Sprint(i%4), fmt.Sprint(i), "a")
			}
			r := p.relay(t, registry{"a": {Topic: "slow"}, "b": {Topic: "small"}}, nil)
			r.answer = func(publish *core.Publish) (core.Outcome, bool) {
				return core.Outcome{}, publish.Topic == "small" || r.now >= publish.DecidedAt+time.Second
			}
			look := func(end time.Duration) {
				for r.now < end { // an answer wakes nobody here
					r.pass(50 * time.Millisecond)
				}
			}
			look(r.now + 10*time.Second)
			late, from := p.emit(t, "1", "late", "b"), r.now
			for p.state(t, late) != core.Published && r.now < from+10*time.Minute {
				look(r.now + 100*time.Millisecond)
			}
			if waited := r.now - from; waited > 5*time.Second {
				t.Errorf("the event of the small topic waited for %s; %+v", waited, r.core.Counts())
			}
		})
	}
}
