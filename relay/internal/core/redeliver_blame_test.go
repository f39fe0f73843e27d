package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// askAll asks for events again, all with one action.
func (r *rig) askAll(events ...outbox.ID) {
	r.t.Helper()
	if _, err := r.store.Redeliver(memstore.Order{Action: r.id(), Actor: "ada"}, "", 0, events...); err != nil {
		r.t.Fatal(err)
	}
}

// requests counts the requests by their states.
func (p *place) requests() map[core.RequestState]int {
	states := map[core.RequestState]int{}
	for _, r := range p.store.Requests() {
		states[r.State]++
	}
	return states
}

// TestACopyThatKillsRelaysFailsAlone: those of other lanes that are in memory at each death are delivered.
func TestACopyThatKillsRelaysFailsAlone(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{16, 64} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			t.Parallel()
			p := newPlace(10)
			routes, change := registry{"a": {Topic: "topic"}}, func(c *core.Config) { c.Concurrency = concurrency }
			r := p.relay(t, routes, change)
			var events []outbox.ID
			for lane := range 10 {
				for i := range 3 {
					events = append(events, p.emit(t, fmt.Sprint(lane), fmt.Sprint(i), "a"))
				}
			}
			r.pass(5 * time.Second)
			r.askAll(events...)
			deaths := 0
			for dead := true; dead && deaths < 20; {
				dead = false
				r.answer = func(q *core.Publish) (core.Outcome, bool) {
					dead = dead || q.Request != 0 && q.Event.ID == events[0]
					return core.Outcome{}, !dead
				}
				for start := p.now; !dead && p.now < start+5*time.Minute; {
					r.pass(100 * time.Millisecond)
				}
				if dead {
					deaths++
					p.now += time.Minute // its lease ends
					r = p.relay(t, routes, change)
				}
			}
			states := p.requests()
			if states[core.RequestFailed] != 1 || states[core.RequestDelivered] != len(events)-1 {
				t.Errorf("after %d deaths the requests are %v", deaths, states)
			}
			if deaths < 4 {
				t.Errorf("%d relays died", deaths)
			}
		})
	}
}

// TestCopiesOfALaneWithoutEventsDoNotWait: relays died while they held it, and nothing in it can be why. To see that
// takes no longer than to look: a relay that gives the lane on soon would never send them.
func TestCopiesOfALaneWithoutEventsDoNotWait(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic"}}
	r := p.relay(t, routes, nil)
	event := p.emit(t, "0", "x", "a")
	r.pass(time.Minute) // and its floor is written down
	r.askAll(event)
	p.now += time.Minute
	for range 3 {
		p.die(t, outbox.ID{}, 0)
	}
	r = p.relay(t, routes, nil)
	r.pass(5 * time.Second)
	if got := p.requests(); got[core.RequestDelivered] != 1 || len(r.alarms) == 0 {
		t.Errorf("the requests are %v, after the alarms %q", got, r.alarms)
	}
}

// TestNothingIsTakenBesideACopyThatMayKill: it would be counted as what the relay died of.
func TestNothingIsTakenBesideACopyThatMayKill(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	routes := registry{"a": {Topic: "topic"}}
	r := p.relay(t, routes, nil)
	suspect, other := p.emit(t, "0", "x", "a"), p.emit(t, "1", "y", "a")
	r.pass(5 * time.Second)
	r.askAll(suspect)
	hangs := true
	answer := func(q *core.Publish) (core.Outcome, bool) { return core.Outcome{}, q.Request == 0 || !hangs }
	for taken := range core.TakesBeforeAlone + 1 {
		if taken > 0 { // the one before has died, and its lease ends
			p.now += time.Minute
			r = p.relay(t, routes, nil)
		}
		r.answer = answer
		for start := p.now; p.store.Requests()[0].Taken == taken && p.now < start+time.Minute; {
			r.pass(time.Second)
		}
	}
	r.askAll(other)
	r.pass(5 * time.Second)
	requests := p.store.Requests()
	if requests[0].Taken != core.TakesBeforeAlone+1 || requests[1].Taken != 0 {
		t.Errorf("while it is in flight the requests are %+v", requests)
	}
	hangs = false
	r.pass(5 * time.Second)
	if got := p.requests(); got[core.RequestDelivered] != 2 {
		t.Errorf("the requests are %v", got)
	}
}

// TestCopiesThatBreakTheirContractWait: after a bad deploy the fault is not theirs. A few fail, the others are sent
// when the contract is mended, and those of other types meanwhile.
func TestCopiesThatBreakTheirContractWait(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "topic"}}, nil)
	var events []outbox.ID
	for i := range 100 {
		events = append(events, p.emit(t, fmt.Sprint(i%2), fmt.Sprint("x", i), "a"))
	}
	other := p.emit(t, "0", "y", "b")
	r.pass(5 * time.Second)
	tries, broken := 0, true
	r.answer = func(q *core.Publish) (core.Outcome, bool) {
		if q.Request != 0 && q.Event.Type == "a" && broken {
			tries++
			return core.Outcome{Class: core.Terminal, Contract: true, Detail: "not what it should be"}, true
		}
		return core.Outcome{}, true
	}
	r.askAll(append(events, other)...)
	r.pass(10 * time.Minute)
	if got := p.requests(); got[core.RequestFailed] != 10 || got[core.RequestDelivered] != 1 {
		t.Errorf("the requests are %v", got)
	}
	if tries > 2000 || len(r.alarms) != 1 {
		t.Errorf("tried %d times, alarms %q", tries, r.alarms)
	}
	if !slices.ContainsFunc(p.store.Requests(), func(r memstore.RequestRow) bool {
		return r.State == core.RequestOpen && r.Error == "not what it should be"
	}) {
		t.Error("none of those that wait says why")
	}
	live := p.emit(t, "0", "live", "a")
	broken = false
	r.pass(2 * time.Minute)
	if got := p.requests(); got[core.RequestFailed] != 10 || got[core.RequestDelivered] != 91 {
		t.Errorf("the contract is mended, and the requests are %v", got)
	}
	if got := p.state(t, live); got != core.Published {
		t.Errorf("a live event of the type is in state %d", got)
	}
}

// TestACopyWhoseOutcomeIsNeverKnownFails, where the topic works for others: it would hold up its job for good.
func TestACopyWhoseOutcomeIsNeverKnownFails(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	d.rig.answer = func(q *core.Publish) (core.Outcome, bool) {
		if q.Request != 0 && q.Event.ID == d.events[0] {
			return core.Outcome{Class: core.Unknown, Detail: "timed out"}, d.now >= q.DecidedAt+5*time.Second
		}
		return core.Outcome{}, true
	}
	d.ask("")
	for i := range 4 * 60 { // so that the topic is seen to work beside some of the tries, and never beside five in a row
		d.emit(t, "0", fmt.Sprint("live", i), "a")
		d.pass(15 * time.Second)
	}
	first := d.store.Requests()[0]
	if first.State != core.RequestFailed || first.Attempts < 5 || first.Error != "timed out" {
		t.Errorf("it is %+v", first)
	}
	if got := d.requests(); got[core.RequestDelivered] != 5 {
		t.Errorf("the requests are %v", got)
	}
}

// TestWhatTheTopicIsToBlameForIsNotCounted: failures of the topic, and then one refusal, are one attempt.
func TestWhatTheTopicIsToBlameForIsNotCounted(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	tries := 0
	d.rig.answer = func(q *core.Publish) (core.Outcome, bool) {
		if q.Request == 0 || q.Event.ID != d.events[0] {
			return core.Outcome{}, true
		}
		switch tries++; {
		case tries <= 4:
			return core.Outcome{Class: core.Unknown, Detail: "timed out"}, true
		case tries == 5:
			return core.Outcome{Class: core.Rejected, Detail: "busy"}, true
		}
		return core.Outcome{}, true
	}
	d.ask("")
	d.pass(3 * time.Minute)
	if first := d.store.Requests()[0]; first.State != core.RequestDelivered {
		t.Errorf("after %d tries it is %+v", tries, first)
	}
}

// TestLargeCopiesLeaveRoomForEvents: to a topic that takes few, they would have half of what is free with every take.
func TestLargeCopiesLeaveRoomForEvents(t *testing.T) {
	t.Parallel()
	const room, size = 1 << 20, 100_000
	p := newPlace(10)
	r := p.relay(t, registry{"a": {Topic: "slow"}}, func(c *core.Config) { c.MaxBytes = room })
	payload := make([]byte, size)
	var events []outbox.ID
	for i := range 200 {
		tx := p.store.Begin()
		event := core.Event{
			ID: p.id(), Type: "a", Payload: payload,
			Aggregate: core.Aggregate{Namespace: fmt.Sprint(i % 10), Type: "t", ID: fmt.Sprint(i)},
		}
		if _, err := tx.Emit(event); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		events = append(events, event.ID)
	}
	r.pass(30 * time.Second)
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
	r.askAll(events...)
	r.pass(5 * time.Second)
	inHands := 0
	for _, request := range p.store.Requests() {
		if request.State == core.RequestOpen && request.Taken > 0 {
			inHands++
		}
	}
	if inHands == 0 || inHands*size > room/4+size {
		t.Errorf("%d copies of %d bytes are in memory, which has room for %d", inHands, size, room)
	}
}
