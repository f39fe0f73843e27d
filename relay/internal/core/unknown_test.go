package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// pass lets time pass for several relays at once, until something has come true.
func (p *place) pass(d time.Duration, until func() bool, relays ...*rig) bool {
	for end := p.now + d; p.now < end; p.now += 50 * time.Millisecond {
		for _, r := range relays {
			r.settle()
		}
		if until() {
			return true
		}
	}
	return false
}

func notYet() bool { return false }

// An event of an unknown type that somebody released or redrove is parked again soon, so that its age counts, it is
// shown as parked, and every verb works on it.
func TestReleasedAndStillUnknown(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(c *core.Config) {
		c.SweepPeriod, c.UnknownTypeMaxAge = 10*time.Second, 10*time.Minute
	})
	event := p.emit(t, "0", "one", "b")
	behind := p.emit(t, "0", "one", "a")
	r.pass(2 * time.Second)
	for i, verb := range []check.Verb{check.Free, check.Free, check.Redrive} {
		if verb == check.Redrive {
			r.pass(15 * time.Minute)
			if state, after := p.state(t, event), p.state(t, behind); state != core.Dead || after != core.Published {
				t.Fatalf("long after its age the event is in state %d, and what was behind it in state %d", state, after)
			}
		}
		p.operate(t, verb, event)
		r.pass(3 * time.Second)
		if state := p.state(t, event); state != core.Parked {
			t.Fatalf("%d: three seconds after the %s the event is in state %d", i, verb, state)
		}
		if verb == check.Redrive {
			behind = p.emit(t, "0", "one", "a")
			r.pass(3 * time.Second)
		}
		if state := p.state(t, behind); state != core.Waiting {
			t.Errorf("%d: what is behind it is in state %d", i, state)
		}
	}
	r.pass(15 * time.Minute)
	if state := p.state(t, behind); state != core.Published {
		t.Errorf("what was behind it is in state %d after its second death", state)
	}
	p.operate(t, check.Discard, event)
}

// Where the contract is not known nobody has asked for a block: an event of an unknown type that dies, by its age or at
// once, is passed by all later ones of its aggregate, those of its own type included.
func TestTheDeathOfAnUnknownTypeStopsNobody(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"by its age": 10 * time.Minute, "at once": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(1)
			aged := func(c *core.Config) { c.SweepPeriod, c.UnknownTypeMaxAge = 10*time.Second, age }
			routes := registry{"a": {Topic: "topic", Block: true}, "c": {Topic: "other", Block: true}}
			r := p.relay(t, routes, aged)
			before := p.emit(t, "0", "one", "a")
			unknown := []outbox.ID{p.emit(t, "0", "one", "b")}
			behind := []outbox.ID{p.emit(t, "0", "one", "a"), p.emit(t, "0", "one", "c")}
			unknown = append(unknown, p.emit(t, "0", "one", "b"))
			behind = append(behind, p.emit(t, "0", "one", "a"))
			r.pass(5 * time.Second)
			if age > 0 {
				if n := p.in(t, core.Waiting, behind); n != len(behind) || p.state(t, before) != core.Published {
					t.Fatalf("%d of %d wait while it is parked, what is before it is in state %d", n, len(behind), p.state(t, before))
				}
				r.core.Stop(r.now)
				r.pass(time.Minute)
				r = p.relay(t, routes, aged) // by whoever has the lane then
				r.pass(15 * time.Minute)
			}
			if n := p.in(t, core.Dead, unknown); n != len(unknown) {
				t.Errorf("%d of %d are dead", n, len(unknown))
			}
			if n := p.in(t, core.Published, behind); n != len(behind) {
				t.Errorf("%d of %d that were behind them are published", n, len(behind))
			}
			for _, letter := range p.store.Letters() {
				if letter.Blocking || letter.Reason != "unknown_event_type" || letter.Attempts != 0 {
					t.Errorf("the letter says %+v", letter)
				}
			}
		})
	}
}

// The age after which an event of an unknown type dies counts from when it was parked: a backlog of days dies no
// sooner, and who has the lane meanwhile does not matter.
func TestTheAgeOfAParkedEvent(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	event := p.emit(t, "0", "one", "b")
	p.now += 48 * time.Hour
	slow := func(c *core.Config) {
		c.Poll, c.FencePeriod, c.HeldPeriod, c.SweepPeriod = 10*time.Second, 10*time.Second, time.Minute, time.Minute
	}
	r := p.relay(t, registry{"a": {Topic: "topic"}}, slow)
	r.pass(12 * time.Hour)
	if state := p.state(t, event); state != core.Parked {
		t.Fatalf("created two days ago and met 12 hours ago, the event is in state %d", state)
	}
	r.core.Stop(r.now)
	r.pass(time.Minute)
	r = p.relay(t, registry{"a": {Topic: "topic"}}, slow)
	r.pass(11 * time.Hour)
	if state := p.state(t, event); state != core.Parked {
		t.Errorf("parked for 23 hours, the event is in state %d", state)
	}
	r.pass(time.Hour + 5*time.Minute)
	if letters := p.store.Letters(); len(letters) != 1 || letters[0].Reason != "unknown_event_type" {
		t.Errorf("parked for 24 hours, the event is in state %d, letters %+v", p.state(t, event), letters)
	}
}

// Events of a known type that are parked because they break their contract stay so. However many and however old they
// are, one of an unknown type dies at its time.
func TestTheAgeBehindOthersThatAreParked(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) {
		c.SweepPeriod, c.UnknownTypeMaxAge = 10*time.Second, time.Minute
	})
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		return core.Outcome{Class: core.Terminal, Contract: true, Reason: "invalid_payload"}, true
	}
	var broken []outbox.ID
	for i := range many {
		broken = append(broken, p.emit(t, "0", fmt.Sprint(i), "a"))
	}
	r.pass(10 * time.Second)
	event := p.emit(t, "0", "one", "b")
	r.pass(2 * time.Minute)
	if n := p.in(t, core.Parked, broken); n < many/2 {
		t.Fatalf("%d of %d are parked: this test does not test", n, many)
	}
	if state := p.state(t, event); state != core.Dead {
		t.Errorf("parked for two minutes, the event is in state %d", state)
	}
}

// takeOvers counts how often relays with this setting take a lane.
func takeOvers() (taken *int, count func(*core.Config)) {
	taken = new(int)
	return taken, func(c *core.Config) {
		c.Observe = func(s core.Step) {
			if s.Do == core.DidAcquire {
				*taken++
			}
		}
	}
}

// What is redriven in the hands of a relay that does not know its type goes to one that does, and the lane stays there.
func TestRedrivenInAMixedFleet(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	taken, count := takeOvers()
	old := p.relay(t, registry{"a": {Topic: "topic"}}, count)
	event := p.emit(t, "0", "one", "b")
	p.pass(2*time.Second, notYet, old)
	p.operate(t, check.Free, event)
	p.pass(20*time.Second, notYet, old)
	newer := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "topic"}}, count)
	refused := 0
	newer.answer = func(*core.Publish) (core.Outcome, bool) {
		if refused++; refused < 3 {
			return core.Outcome{Class: core.Rejected}, true
		}
		return core.Outcome{}, true
	}
	if !p.pass(time.Minute, func() bool { return p.state(t, event) == core.Published }, old, newer) {
		t.Fatalf("a minute after a relay came that knows its type the event is in state %d", p.state(t, event))
	}
	p.pass(10*time.Minute, notYet, old, newer)
	if *taken > 6 {
		t.Errorf("lanes changed hands %d times", *taken)
	}
}

// An event that kills whoever sends it is quarantined, also where a relay that does not know its type has the lane
// between two deaths, for as long as an orchestrator waits before it starts the next one.
func TestAnEventThatKillsBesideAnOlderRelay(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{40 * time.Second, 5 * time.Minute} {
		p := newPlace(1)
		old := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
		event := p.emit(t, "0", "one", "b")
		dead := func() bool { return p.state(t, event) == core.DeadBlocking }
		kills := 0
		for p.pass(away, notYet, old); kills < 20 && !dead(); p.pass(away, notYet, old) {
			newer := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "topic", Block: true}}, nil)
			newer.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
			if !p.pass(5*time.Minute, func() bool { return len(newer.flying) > 0 || dead() }, old, newer) {
				t.Fatalf("after %d kills nobody sends the event, it is in state %d", kills, p.state(t, event))
			}
			kills += len(newer.flying)
		}
		if letters := p.store.Letters(); len(letters) != 1 || letters[0].Reason != "crash_suspect" || kills > 8 {
			t.Errorf("away %s: after %d kills the event is in state %d, letters %+v", away, kills, p.state(t, event), letters)
		}
	}
}

// A lane in which a dead event blocks others, of a type that not every relay knows, stays where it is known.
func TestALaneStaysWhereItsTypesAreKnown(t *testing.T) {
	t.Parallel()
	p := newPlace(4)
	taken, count := takeOvers()
	old := p.relay(t, registry{"a": {Topic: "topic"}}, count)
	newer := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "topic", Block: true}}, count)
	newer.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Event.Type == "b" {
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		}
		return core.Outcome{}, true
	}
	var events, behind []outbox.ID
	for _, lane := range []string{"0", "1", "2", "3"} {
		events = append(events, p.emit(t, lane, "one", "b"))
		behind = append(behind, p.emit(t, lane, "one", "a"))
	}
	p.pass(2*time.Minute, notYet, old, newer)
	if n := p.in(t, core.DeadBlocking, events); n != len(events) {
		t.Fatalf("%d of %d events are dead", n, len(events))
	}
	*taken = 0
	p.pass(20*time.Minute, notYet, old, newer)
	if *taken > 0 {
		t.Errorf("lanes changed hands %d times in 20 minutes in which nothing happened", *taken)
	}
	newer.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, true }
	p.operate(t, check.Redrive, events...)
	p.pass(2*time.Minute, notYet, old, newer)
	if n := p.in(t, core.Published, append(events, behind...)); n != len(events)+len(behind) {
		t.Errorf("%d of %d events are published after the redrive", n, len(events)+len(behind))
	}
	if n := old.core.Counts().Lanes; n != 2 {
		t.Errorf("the older relay has %d of 4 lanes after that", n)
	}
}

// What waits when a relay takes the lane that does not know its type is parked at once, all of it: each has its age
// from then on, and not from the death of the one before.
func TestWhatWaitsOfAnUnknownTypeIsParked(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	short := func(c *core.Config) {
		c.SweepPeriod, c.UnknownTypeMaxAge, c.MaxAttempts = 10*time.Second, 10*time.Minute, 100
	}
	knows := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "topic"}}, short)
	knows.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{Class: core.Rejected}, true }
	var unknown []outbox.ID
	for range 5 {
		unknown = append(unknown, p.emit(t, "0", "one", "b"))
	}
	behind := p.emit(t, "0", "one", "a")
	knows.pass(5 * time.Second)
	knows.core.Stop(knows.now)
	knows.pass(30 * time.Second)
	if n := p.in(t, core.Waiting, unknown); !knows.stopped || n != 4 {
		t.Fatalf("%d of 5 wait: this test does not test", n)
	}
	r := p.relay(t, registry{"a": {Topic: "topic"}}, short)
	r.pass(30 * time.Second)
	if n := p.in(t, core.Parked, unknown); n != len(unknown) {
		t.Errorf("%d of %d are parked", n, len(unknown))
	}
	r.pass(11 * time.Minute)
	if dead, state := p.in(t, core.Dead, unknown), p.state(t, behind); dead != len(unknown) || state != core.Published {
		t.Errorf("after their age %d of %d are dead, and the one behind them is in state %d", dead, len(unknown), state)
	}
}

// One that is released behind another that is parked is parked again soon.
func TestTheSecondOfAnUnknownTypeIsReleased(t *testing.T) {
	t.Parallel()
	for _, later := range []string{"b", "c"} {
		p := newPlace(1)
		r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
		p.emit(t, "0", "one", "b")
		second := p.emit(t, "0", "one", later)
		r.pass(2 * time.Second)
		p.operate(t, check.Free, second)
		r.pass(5 * time.Second)
		if state := p.state(t, second); state != core.Parked {
			t.Errorf("%s: after 5 s it is in state %d", later, state)
		}
	}
}
