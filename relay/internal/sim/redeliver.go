package sim

import (
	"math/rand/v2"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// copiesTopic is one to which no type goes.
const copiesTopic = "topic-copies"

// redeliverSome lets an operator ask for published events again, now and then, and think better of some of it. Its dice
// are its own: whatever else a seed does, it did before there were requests.
func (sim *Simulation) redeliverSome(r *rand.Rand) {
	if sim.plan.copies == 0 {
		return
	}
	sim.after(span(r, sim.plan.copies/2, 2*sim.plan.copies), func() {
		if sim.healed {
			return
		}
		share := r.Float64()
		events := sim.those(func(row memstore.EventRow) bool { return row.State == core.Published && r.Float64() < share })
		topic := append([]string{"", "", copiesTopic}, sim.plan.topics...)[r.IntN(3+len(sim.plan.topics))]
		every := []time.Duration{0, 0, 50 * time.Millisecond}[r.IntN(3)]
		order := memstore.Order{Action: sim.newID(), Actor: "ada", Reason: "once more"}
		if len(events) > 0 {
			if _, err := sim.store.Redeliver(order, topic, every, events...); err != nil {
				sim.problemf("redeliver: %v", err)
			}
			sim.logf("%d events are asked for again, for topic %q", len(events), topic)
			if r.IntN(3) == 0 {
				cancel := memstore.Order{Action: sim.newID(), Actor: "ada", Reason: "not needed"}
				sim.after(span(r, 0, 5*time.Second), func() { sim.cancelRequests(cancel, order.Action) })
			}
		}
		sim.redeliverSome(r)
	})
}

// cancelRequests cancels until nobody has any of it in hands.
func (sim *Simulation) cancelRequests(order memstore.Order, action outbox.ID) {
	canceled, inHands, err := sim.store.CancelRequests(order, action)
	if err != nil {
		sim.problemf("cancel: %v", err)
		return
	}
	sim.logf("%d requests are canceled, %d are in somebody's hands", canceled, inHands)
	if inHands > 0 && !sim.healed {
		sim.after(100*time.Millisecond, func() { sim.cancelRequests(order, action) })
	}
}
