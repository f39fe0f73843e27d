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
