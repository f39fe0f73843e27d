package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// pausedFleet: what an operator pauses stands still within about a second, through the deaths of all relays, while
// the rest goes on; resumed, it goes on from where it was.
func pausedFleet(short bool) []Figure {
	length := 10 * time.Minute
	if short {
		length = time.Minute
	}
	p := faultless(11)
	p.aggregates, p.relays = 200, 2
	p.topics = append(p.topics, "topic-1")
	p.kinds = append(p.kinds, kind{name: "type-1", Route: core.Route{Topic: "topic-0", Block: true}},
		kind{name: "type-2", Route: core.Route{Topic: "topic-1", Block: true}})
	sim := newSimulation(p, Mutant{}, nil)
	pauses := []core.Pause{
		{Scope: core.ScopeAll}, {Scope: core.ScopeTopic, Name: "topic-1"}, {Scope: core.ScopeType, Name: "type-1"},
	}
	sim.load(10*time.Millisecond, sim.now+time.Duration(len(pauses))*2*length, func(i int) *kind { return &p.kinds[i%3] })
	for range p.relays {
		sim.join(false)
	}
	paused, others := int64(0), int64(0)
	for _, pause := range pauses {
		sim.pass(length / 2)
		sim.pauseScope(pause.Scope, pause.Name)
		sim.pass(1100 * time.Millisecond)
		sim.broker.sent = func(publish *core.Publish) {
			if covers(pause, publish.Topic, publish.Event.Type) {
				paused++
			} else {
				others++
			}
		}
		sim.pass(length / 2)
		for _, relay := range sim.relays {
			if !relay.gone {
				relay.kill()
				sim.join(false)
			}
		}
		sim.pass(length / 2)
		sim.broker.sent = nil
		sim.resumeScope(pause.Scope, pause.Name)
	}
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		exactly("paused_sent", paused, 0),
		atLeast("paused_others_sent", others, int64(length/time.Second)*10),
		exactly("paused_dead", int64(verdict.Count(check.DeadLettered)), 0),
		exactly("paused_charged", sim.spent(), 0),
		exactly("paused_undelivered", int64(verdict.Count(check.Committed)-verdict.Count(check.DeliveredDistinct)), 0),
		exactly("paused_wrong", wrong, 0),
	}
}
