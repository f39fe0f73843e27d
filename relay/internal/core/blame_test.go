package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Nothing dies in an outage of the broker, also when relays are killed meanwhile for reasons of their own.
func TestKillsDuringAnOutage(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	down := true
	event := p.emit(t, "0", "one", "a")
	for life := range 12 {
		r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
		r.answer = func(*core.Publish) (core.Outcome, bool) {
			if down {
				return core.Outcome{Class: core.RouteFault, Detail: "the broker is down"}, true
			}
			return core.Outcome{}, true
		}
		r.pass(40 * time.Second)
		for range 1000 { // killed while nothing is in flight, between two probes
			if len(r.flying) == 0 && r.wake > r.now {
				break
			}
			r.pass(time.Millisecond)
		}
		if state := p.state(t, event); state != core.Ready {
			t.Fatalf("life %d: the event is in state %d, letters %+v", life, state, p.store.Letters())
		}
		p.now += time.Minute // the lease expires
	}
}

// While an event is in flight alone, the database has it noted, also when the one before it is settled at
// the same time.
func TestNoteAndSettleOfOneLane(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic", Block: true}}
	first := p.emit(t, "0", "one", "a")
	hang := func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
	for range 3 { // dies with the first event in flight
		r := p.relay(t, routes, nil)
		r.answer = hang
		r.pass(4 * time.Second)
		p.now += time.Minute
	}
	second := p.emit(t, "0", "two", "a")
	r := p.relay(t, routes, nil)
	r.answer = func(publish *core.Publish) (core.Outcome, bool) { return core.Outcome{}, publish.Event.ID == first }
	r.pass(4 * time.Second)
	if len(r.flying) != 1 || r.flying[0].Event.ID != second {
		t.Fatalf("%d publishes are in flight", len(r.flying))
	}
	if noted := p.store.Lanes()[0].MarkedEvent; noted != second {
		t.Errorf("event %s is in flight alone, and noted is %s", second, noted)
	}
}

// In an outage nothing is acknowledged, and yet most events keep their contract: the few that break it die, and the
// type is not paused for their sake.
func TestAnOutageIsNoBadDeploy(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	down := true
	broken := map[outbox.ID]bool{}
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		switch {
		case broken[publish.Event.ID]:
			return core.Outcome{Class: core.Terminal, Reason: "contract", Contract: true}, true
		case down:
			return core.Outcome{Class: core.RouteFault}, true
		}
		return core.Outcome{}, true
	}
	for i := range 300 {
		id := p.emit(t, "0", fmt.Sprint(i), "a")
		broken[id] = i%3 == 0
	}
	r.pass(2 * time.Hour)
	down = false
	r.pass(time.Minute)
	states := map[core.State]int{}
	for _, event := range p.store.Events() {
		states[event.State]++
	}
	if len(r.alarms) > 0 || states[core.Dead] != 100 || states[core.Published] != 200 {
		t.Errorf("the states are %v, alarms %q", states, r.alarms)
	}
}

// A topic that refuses the events of many aggregates and takes none is what is wrong, and nobody pays for it. Once it
// has taken one, an event that it refuses is charged again.
func TestATopicThatRefusesManyPausesAndChargesNobody(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	told, charged := map[core.Do]int{}, map[outbox.ID]int{}
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(c *core.Config) {
		c.Observe = func(s core.Step) {
			told[s.Do]++
			if s.Do == core.DidCharge {
				charged[s.Event]++
			}
		}
	})
	const aggregates = 20
	var bad outbox.ID
	refuses := true
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if refuses || publish.Event.ID == bad {
			return core.Outcome{Class: core.Rejected, Detail: "the schema says no"}, true
		}
		return core.Outcome{}, true
	}
	var ids []outbox.ID
	for i := range aggregates {
		ids = append(ids, p.emit(t, "0", fmt.Sprint(i), "a"))
	}
	r.pass(2 * time.Hour)
	if spent := len(charged); spent > 2 || len(p.store.Letters()) > 0 || told[core.DidPause] != 1 {
		t.Fatalf("%d events were charged, %d are dead, and the topic was paused %d times", spent, len(p.store.Letters()),
			told[core.DidPause])
	}
	refuses, bad = false, ids[7]
	before := charged[bad]
	r.pass(time.Minute)
	for i, id := range ids {
		if state := p.state(t, id); (state == core.Published) == (id == bad) {
			t.Errorf("event %d is in state %d", i, state)
		}
	}
	if charged[bad] == before || told[core.DidResume] != 1 {
		t.Errorf("the one that is refused while others pass is charged %d times, the topic resumed %d times",
			charged[bad]-before, told[core.DidResume])
	}
	r.pass(2 * time.Hour)
	if state := p.state(t, bad); state != core.DeadBlocking {
		t.Errorf("it is in state %d", state)
	}
}

// A key that is in trouble while others pass is tried later each time: each try may be a copy.
func TestAKeyInTroubleIsTriedLaterEachTime(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(c *core.Config) {
		c.MaxDelay, c.Deadline = 5*time.Minute, 10*time.Second
	})
	sick := p.emit(t, "0", "sick", "a")
	began := map[*core.Publish]time.Duration{}
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Event.ID != sick {
			return core.Outcome{}, true
		}
		if _, known := began[publish]; !known {
			began[publish] = p.now
		}
		// others pass meanwhile
		return core.Outcome{Class: core.RouteFault, Detail: "no answer"}, p.now >= began[publish]+8*time.Second
	}
	for i := range 3600 {
		p.emit(t, "0", fmt.Sprint(i%50), "a")
		r.pass(time.Second)
	}
	if tries := len(began); tries < 10 || tries > 40 {
		t.Errorf("%d tries in an hour", tries)
	}
}
