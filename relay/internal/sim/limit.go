package sim

import (
	"math/rand/v2"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// limitSome lets an operator limit topics now and then, think of another rate, and lift it again. Its dice are its own,
// as those of redeliverSome.
func (sim *Simulation) limitSome(r *rand.Rand) {
	if sim.plan.limits == 0 {
		return
	}
	sim.after(span(r, sim.plan.limits/2, 2*sim.plan.limits), func() {
		if sim.healed {
			return
		}
		topics := append([]string{copiesTopic}, sim.plan.topics...)
		topic := topics[r.IntN(len(topics))]
		sim.limitTopic(topic, []float64{0.5, 1, 2, 5, 20}[r.IntN(5)])
		if r.IntN(3) > 0 {
			sim.after(span(r, sim.plan.config.Lease, 5*sim.plan.config.Lease), func() {
				if !sim.healed {
					sim.limitTopic(topic, 0)
				}
			})
		}
		sim.limitSome(r)
	})
}

// limitTopic sets the limit of a topic; zero lifts it.
func (sim *Simulation) limitTopic(topic string, rate float64) {
	outcome, err := sim.store.Limit(memstore.Order{Action: sim.newID(), Actor: "ada", Reason: "gently"}, topic, rate)
	sim.logf("%s is limited to %v per second: %s %v", topic, rate, outcome, err)
	if err != nil {
		sim.problemf("limit: %v", err)
	}
	if outcome == memstore.Done {
		delete(sim.limits, topic)
	}
}

// limitWatch counts what is sent to a limited topic, and lets it leak away as fast as the limit allows. As long as it
// has no more than what may be saved up, no window of time has seen more than the limit and that.
type limitWatch struct {
	rate  float64
	level float64
	since time.Duration // it counts from here on
	at    time.Duration
}

// savedUp is for how long relays save up what they did not use; each of them may have one publish more.
const savedUp = 100 * time.Millisecond

// sent takes in a publish, and tells whether it was too many.
func (w *limitWatch) sent(now time.Duration, slack float64) bool {
	w.level = max(0, w.level-w.rate*(now-w.at).Seconds()) + 1
	w.at = now
	return w.level > w.rate*savedUp.Seconds()+slack+0.001
}

// watchLimits looks whether a publish keeps to the limit that its relay knows, and whether the fleet does.
func (sim *Simulation) watchLimits(relay *relayProcess, topic string) {
	if rate := rateOf(relay.limits, topic); rate > 0 {
		watch := relay.sent[topic]
		if watch == nil || watch.rate != rate {
			watch = &limitWatch{rate: rate, at: sim.now}
			relay.sent[topic] = watch
		}
		if watch.sent(sim.now, 1) {
			sim.problemf("%s publishes to %s, and knows that %v per second are too many", relay.name, topic, rate)
		}
	}
	rate := rateOf(sim.store.Limits(), topic)
	watch := sim.limits[topic]
	if watch == nil || watch.rate != rate {
		// a relay that has not heard of it may not publish after its lease
		watch = &limitWatch{rate: rate, since: sim.now + sim.plan.config.Lease}
		sim.limits[topic] = watch
	}
	// Where a lease was cut short, or a failover took back who holds a lane, two relays have it for a while.
	if sim.now < max(watch.since, sim.shaken+sim.plan.config.Lease) || rate == 0 {
		watch.level, watch.at = 0, sim.now
		return
	}
	sim.limited++
	if watch.sent(sim.now, float64(sim.plan.relays)) {
		sim.problemf("%s publishes to %s, and all together exceed %v per second", relay.name, topic, rate)
	}
}

func rateOf(limits []core.Limit, topic string) float64 {
	for _, limit := range limits {
		if limit.Topic == topic {
			return limit.Rate
		}
	}
	return 0
}
