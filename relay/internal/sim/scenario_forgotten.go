package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// forgottenCopies: relays take copies and do not learn of it, and then an operator pauses what these are for. Whoever
// cancels them waits for no resume, and nobody keeps what is not canceled in hands.
func forgottenCopies(bool) []Figure { return forgetCopies(Mutant{}) }

func forgetCopies(mutant Mutant) []Figure {
	p := faultless(29)
	p.aggregates, p.relays = 50, 2
	sim := newSimulation(p, mutant, nil)
	for range p.relays {
		sim.join(false)
	}
	sim.bulk(200, func(int) *kind { return &p.kinds[0] })
	sim.pass(10 * time.Second)
	events := sim.those(func(row memstore.EventRow) bool { return row.State == core.Published })
	longest, kept := time.Duration(0), 0
	for _, pause := range []core.Pause{
		{Scope: core.ScopeTopic, Name: "topic-0"}, {Scope: core.ScopeType, Name: "type-0"}, {Scope: core.ScopeAll},
	} {
		for _, unheard := range []*core.Op{&sim.losing, &sim.belated} {
			*unheard = core.OpTakeRequests
			needless := sim.requestCopies(events)
			sim.requestCopies(events)
			sim.pass(1500 * time.Millisecond)
			sim.pauseScope(pause.Scope, pause.Name)
			sim.pass(1100 * time.Millisecond)
			*unheard = ""
			if unheard == &sim.belated {
				sim.pass(p.config.Lease / 3) // until it is done
			}
			longest = max(longest, sim.cancelAll(needless))
			sim.pass(3 * time.Second)
			kept += sim.inHands()
			sim.resumeScope(pause.Scope, pause.Name)
			sim.pass(20 * time.Second)
		}
	}
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		atLeast("forgotten_takes", int64(sim.takesLost), 6*int64(p.relays)),
		atMost("forgotten_cancel_ms", longest.Milliseconds(), 3000),
		exactly("forgotten_kept", int64(kept), 0),
		exactly("forgotten_redelivered", int64(verdict.Count(check.Redelivered)), 6*int64(len(events))),
		exactly("forgotten_wrong", wrong, 0),
	}
}

// requestCopies has events delivered again.
func (sim *Simulation) requestCopies(events []outbox.ID) (action outbox.ID) {
	order := memstore.Order{Action: sim.newID(), Actor: "ada", Reason: "once more"}
	if _, err := sim.store.Redeliver(order, "", 0, events...); err != nil {
		sim.problemf("redeliver: %v", err)
	}
	return order.Action
}

// cancelAll cancels what an action asked for until nobody has any of it in hands, and tells how long that took.
func (sim *Simulation) cancelAll(action outbox.ID) time.Duration {
	began := sim.now
	order := memstore.Order{Action: sim.newID(), Actor: "ada", Reason: "not needed"}
	for sim.now < began+time.Minute {
		_, inHands, err := sim.store.CancelRequests(order, action)
		if err != nil {
			sim.problemf("cancel: %v", err)
		}
		if inHands == 0 {
			break
		}
		sim.pass(100 * time.Millisecond)
	}
	return sim.now - began
}

// inHands counts the open requests that the holders of their lanes have, as the database says.
func (sim *Simulation) inHands() (n int) {
	lanes := map[int16]outbox.ID{}
	for _, lane := range sim.store.Lanes() {
		lanes[lane.Lane] = lane.Token
	}
	for _, r := range sim.store.Requests() {
		if r.State == core.RequestOpen && r.TakenBy != (outbox.ID{}) && r.TakenBy == lanes[r.Lane] {
			n++
		}
	}
	return n
}
