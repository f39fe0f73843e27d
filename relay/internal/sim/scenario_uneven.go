package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// unevenTopics: one topic is slow and has a huge backlog, the other has an event now and then. Relay after relay starts
// with that backlog and meets the small topic late: its event waits for the other topic for some seconds at most.
func unevenTopics(short bool) []Figure {
	relays, backlog := 120, 100_000
	if short {
		relays, backlog = 12, 10_000
	}
	p := faultless(12)
	p.aggregates = 2000
	p.topics = append(p.topics, "topic-1")
	p.kinds = append(p.kinds, kind{name: "type-1", Route: core.Route{Topic: "topic-1", Block: true}})
	sim := newSimulation(p, Mutant{}, nil)
	sim.broker.slow = map[string]time.Duration{"topic-0": time.Second}
	sim.bulk(backlog, func(int) *kind { return &p.kinds[0] })
	met, longest := 0, time.Duration(0)
	sim.broker.taken = func(e *core.Event, topic string) {
		if topic == "topic-1" {
			met++
			longest = max(longest, sim.now-sim.bornAt(e))
		}
	}
	for i := range relays {
		relay := sim.join(false)
		sim.pass(sim.span(2*time.Second, 12*time.Second))
		sim.bulk(1, func(int) *kind { return &p.kinds[1] })
		sim.run(sim.now+10*time.Minute, func() bool { return met > i })
		relay.stop()
		sim.run(sim.now+time.Minute, func() bool { return relay.gone })
	}
	sim.broker.taken, sim.broker.slow = nil, nil
	sim.join(false)
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		exactly("uneven_met_late", int64(met), int64(relays)),
		atMost("uneven_longest_wait_ms", longest.Milliseconds(), 5000),
		exactly("uneven_dead", int64(verdict.Count(check.DeadLettered)), 0),
		exactly("uneven_wrong", wrong, 0),
	}
}
