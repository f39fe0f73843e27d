package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// deaths are the ways in which an event dies by its own fault, and what it is charged with.
var deaths = map[string]struct {
	core.Outcome
	attempts int32
}{
	"out of attempts": {core.Outcome{Class: core.Rejected, Detail: "not now"}, 3},
	"for good":        {core.Outcome{Class: core.Terminal, Reason: "rejected", Detail: "never"}, 1},
	"by its contract": {
		core.Outcome{Class: core.Terminal, Reason: "invalid_payload", Detail: "n: missing", Contract: true}, 0,
	},
}

// RL-10, RL-15: within one aggregate, a bad event holds up later ones of its topic while it is tried. Once it is dead
// they go on, in order and without anybody's doing, unless its contract says block: then they wait for a person.
func TestABadEventWithinItsAggregate(t *testing.T) {
	t.Parallel()
	for how, death := range deaths {
		for setting, block := range map[string]bool{"skip": false, "block": true} {
			t.Run(how+" under "+setting, func(t *testing.T) {
				t.Parallel()
				p := newPlace(1)
				routes := registry{"a": {Topic: "topic", Block: block}, "b": {Topic: "other", Block: block}}
				others := []outbox.ID{p.emit(t, "0", "one", "a")}
				bad := p.emit(t, "0", "one", "a")
				behind := []outbox.ID{p.emit(t, "0", "one", "a"), p.emit(t, "0", "one", "a")}
				others = append(others, p.emit(t, "0", "one", "b"), p.emit(t, "0", "two", "a"), p.emit(t, "0", "two", "b"))
				hanging := true
				answer := func(publish *core.Publish) (core.Outcome, bool) {
					if publish.Event.ID == bad {
						return death.Outcome, !hanging
					}
					return core.Outcome{}, true
				}
				r := p.relay(t, routes, nil)
				r.answer = answer
				r.pass(2 * time.Second)
				if n, passed := p.in(t, core.Published, others), p.in(t, core.Published, behind); n != len(others) || passed > 0 {
					t.Fatalf("while it is tried %d of %d others are out, and %d of those behind it", n, len(others), passed)
				}
				hanging = false
				r.pass(time.Minute)
				state, after := core.Dead, core.Published
				if block {
					state, after = core.DeadBlocking, core.Waiting
				}
				dead, _ := p.store.Event(bad)
				if dead.State != state || dead.Attempts != death.attempts || p.in(t, after, behind) != len(behind) {
					t.Fatalf("it is in state %d after %d attempts, and %d of %d behind it are in state %d",
						dead.State, dead.Attempts, p.in(t, after, behind), len(behind), after)
				}
				// So it is for a relay that comes later, and for what comes later.
				r.core.Stop(r.now)
				r.pass(time.Minute)
				next := p.relay(t, routes, nil)
				next.answer = answer
				behind = append(behind, p.emit(t, "0", "one", "a"))
				next.pass(time.Minute)
				if n := p.in(t, after, behind); n != len(behind) {
					t.Errorf("with the next relay %d of %d behind it are in state %d", n, len(behind), after)
				}
				if block {
					p.operate(t, check.Skip, bad)
					next.pass(10 * time.Second)
				}
				var sent []outbox.ID
				for _, id := range slices.Concat(r.sent, next.sent) {
					if slices.Contains(behind, id) {
						sent = append(sent, id)
					}
				}
				if !slices.Equal(sent, behind) {
					t.Errorf("those behind it were sent as %v, want each once and in the order %v", sent, behind)
				}
				if n := p.in(t, core.Published, behind); n != len(behind) || p.state(t, bad) != core.Dead {
					t.Errorf("in the end %d of %d behind it are published, and it is in state %d", n, len(behind), p.state(t, bad))
				}
				letters := p.store.Letters()
				if len(letters) != 1 || letters[0].Blocking != block || letters[0].Attempts != death.attempts {
					t.Errorf("the letters are %+v", letters)
				}
			})
		}
	}
}

// A contract that is broken is found before anything is sent: the attempts stay as they were, whatever they were.
func TestABrokenContractCountsNoAttempt(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	charged := 0
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) {
		c.Observe = func(s core.Step) {
			if s.Do == core.DidCharge {
				charged++
			}
		}
	})
	tries := 0
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		if tries++; tries < 3 {
			return core.Outcome{Class: core.Rejected, Detail: "not now"}, true
		}
		return core.Outcome{Class: core.Terminal, Reason: "invalid_payload", Detail: "n: missing", Contract: true}, true
	}
	id := p.emit(t, "0", "one", "a")
	r.pass(time.Minute)
	event, _ := p.store.Event(id)
	letters := p.store.Letters()
	if event.State != core.Dead || event.Attempts != 2 || charged != 2 || len(letters) != 1 || letters[0].Attempts != 2 {
		t.Errorf("state %d after %d attempts, of which %d were told; letters %+v", event.State, event.Attempts,
			charged, letters)
	}
}

// The attempt that a publish carries is one more than what was counted against the event. What nobody is to blame for
// repeats it, and so does a failure that was never written down; a redrive begins anew.
func TestTheAttemptOfAPublish(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	type send struct {
		attempt     int
		redelivered bool
	}
	var sends []send
	outcome := core.Outcome{}
	answer := func(publish *core.Publish) (core.Outcome, bool) {
		sends = append(sends, send{publish.Attempt, publish.Redelivered})
		return outcome, true
	}
	want := func(what string, want ...send) {
		t.Helper()
		if !slices.Equal(sends, want) {
			t.Errorf("%s: sent as %v, want %v", what, sends, want)
		}
		sends = nil
	}
	routes := registry{"a": {Topic: "topic"}}
	r := p.relay(t, routes, nil)
	r.answer = answer
	r.pass(time.Second)

	outcome = core.Outcome{Class: core.Rejected, Detail: "not now"}
	id := p.emit(t, "0", "one", "a")
	r.pass(time.Minute)
	want("refused until it is dead", send{1, false}, send{2, true}, send{3, true})
	outcome = core.Outcome{}
	p.operate(t, check.Redrive, id)
	r.pass(10 * time.Second)
	want("redriven", send{1, true})

	outcome = core.Outcome{Class: core.RouteFault, Detail: "down"}
	p.emit(t, "0", "one", "a")
	r.pass(time.Second)
	if len(sends) < 2 {
		t.Fatalf("sent %d times in the outage: this test does not test", len(sends))
	}
	for i, s := range sends {
		if s != (send{1, i > 0}) {
			t.Errorf("send %d of the outage is %v", i, s)
		}
	}
	outcome, sends = core.Outcome{}, nil
	r.pass(5 * time.Minute)
	want("after the outage", send{1, true})

	outcome = core.Outcome{Class: core.Rejected, Detail: "not now"}
	r.via = &memstore.Faulty{Store: p.store, Plan: func(operation memstore.Operation) memstore.Fault {
		if operation == "Settle" {
			return memstore.NotDone
		}
		return memstore.None
	}}
	lost := p.emit(t, "0", "one", "a")
	r.pass(5 * time.Second)
	want("refused, and not written down", send{1, false})
	p.now += time.Hour // that relay is gone
	outcome = core.Outcome{}
	next := p.relay(t, routes, nil)
	next.answer = answer
	next.pass(time.Minute)
	want("by the next owner", send{1, true})
	if state := p.state(t, lost); state != core.Published {
		t.Errorf("it is in state %d", state)
	}
}
