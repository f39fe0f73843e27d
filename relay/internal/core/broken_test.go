package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// breaking answers like a relay that finds the contract of some events broken.
func breaking(broken map[outbox.ID]bool) func(*core.Publish) (core.Outcome, bool) {
	return func(publish *core.Publish) (core.Outcome, bool) {
		if broken[publish.Event.ID] {
			return core.Outcome{Class: core.Terminal, Reason: "invalid_payload", Contract: true}, true
		}
		return core.Outcome{}, true
	}
}

// X1: malformed events of one tenant are set aside, and those of all others that are of the same type go out.
func TestMalformedEventsOfOneTenantStopNobodyElse(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	broken := map[outbox.ID]bool{}
	r.answer = breaking(broken)
	for i := range 12 {
		broken[p.emit(t, "0", fmt.Sprint("malformed ", i), "a")] = true
	}
	r.pass(time.Minute)
	var behind []outbox.ID
	for i := range 2 { // of the aggregates of the last two, which are parked
		behind = append(behind, p.emit(t, "0", fmt.Sprint("malformed ", 10+i), "a"))
	}
	var good []outbox.ID
	for i := range 30 {
		good = append(good, p.emit(t, fmt.Sprint(i%2), fmt.Sprint("good ", i), "a"))
	}
	r.pass(time.Minute)
	states := map[core.State]int{}
	for _, id := range good {
		states[p.state(t, id)]++
	}
	if states[core.Published] != len(good) {
		t.Errorf("%d of %d good events are out, the states are %v", states[core.Published], len(good), states)
	}
	states = map[core.State]int{}
	for id := range broken {
		states[p.state(t, id)]++
	}
	if states[core.Dead] != 10 || states[core.Parked] != 2 || len(r.alarms) != 1 {
		t.Errorf("the malformed ones are in the states %v, alarms %q", states, r.alarms)
	}
	for _, id := range behind {
		if state := p.state(t, id); state != core.Waiting {
			t.Errorf("what is behind a parked event is in state %d", state)
		}
	}
}

// A bad deployment whose events break their contract but for a few kills no more of them than one that breaks all: the
// few that pass do not begin the count anew.
func TestFewThatPassDoNotMakeABadDeployDeadlier(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) { c.Concurrency = 1 })
	broken := map[outbox.ID]bool{}
	r.answer = breaking(broken)
	for i := range 300 {
		broken[p.emit(t, "0", fmt.Sprint(i), "a")] = i%10 != 0
	}
	r.pass(time.Minute)
	states := map[core.State]int{}
	for _, event := range p.store.Events() {
		states[event.State]++
	}
	if states[core.Dead] != 10 || states[core.Parked] != 260 || states[core.Published] != 30 || len(r.alarms) != 1 {
		t.Errorf("the states are %v, alarms %q", states, r.alarms)
	}
	for i := range 20 { // the fix is deployed at the producers
		p.emit(t, "0", fmt.Sprint("fixed ", i), "a")
	}
	r.pass(time.Minute)
	malformed := p.emit(t, "0", "malformed", "a")
	broken[malformed] = true
	r.pass(time.Minute)
	if state := p.state(t, malformed); state != core.Dead {
		t.Errorf("one malformed event long after the pause has ended is in state %d", state)
	}
}

// K13: when a type's pause ends, lanes that have nothing to do with it stay open. So do those that have: what is parked
// would break its contract again.
func TestTheEndOfATypesPauseClosesNoLane(t *testing.T) {
	t.Parallel()
	p := newPlace(3)
	r := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "other"}}, nil)
	broken := map[outbox.ID]bool{}
	late := p.emit(t, "0", "late", "a")
	for i := range 12 {
		broken[p.emit(t, "0", fmt.Sprint("malformed ", i), "a")] = true
	}
	hanging, others := true, breaking(broken)
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Event.ID == late && hanging {
			return core.Outcome{}, false
		}
		return others(publish)
	}
	r.pass(time.Second)
	looks := r.calls[core.OpHeldKeys]
	hanging = false
	r.pass(time.Second)
	if state := p.state(t, late); state != core.Published {
		t.Fatalf("the event that keeps its contract is in state %d", state)
	}
	if again := r.calls[core.OpHeldKeys] - looks; again > 0 {
		t.Errorf("%d times lanes were opened again when the type's pause ended", again)
	}
}

// What is released while most of its type break the contract, and breaks it again, is parked again: retried for ever,
// it would be seen by nobody, and no verb would take it.
func TestWhatIsReleasedAndBreaksItsContractIsParkedAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	broken := map[outbox.ID]bool{}
	r.answer = breaking(broken)
	var all []outbox.ID
	for i := range 15 {
		all = append(all, p.emit(t, "0", fmt.Sprint(i), "a"))
		broken[all[i]] = true
	}
	r.pass(time.Minute)
	var parked, dead outbox.ID
	for _, id := range all {
		if state := p.state(t, id); state == core.Parked {
			parked = id
		} else if state == core.DeadBlocking {
			dead = id
		}
	}
	for verb, id := range map[check.Verb]outbox.ID{check.Free: parked, check.Redrive: dead} {
		if _, err := p.store.Operate(verb, memstore.Order{Action: p.id(), Actor: "ann"}, id); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Hour)
		if got := p.state(t, id); got != core.Parked {
			t.Errorf("%s: it is in state %d", verb, got)
		}
	}
}
