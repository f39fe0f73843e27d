package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// limitedFleet: a backlog for a limited topic goes out at the set rate and no faster, though relays die and lanes move
// and copies are asked for; another topic of the same aggregates waits for nothing. Lifted, the rest goes at once.
func limitedFleet(short bool) []Figure {
	const rate = 100
	length := 10 * time.Minute
	if short {
		length = time.Minute
	}
	p := faultless(17)
	p.aggregates, p.relays = 200, 3
	p.topics = append(p.topics, "topic-1")
	p.kinds = append(p.kinds, kind{name: "type-1", Route: core.Route{Topic: "topic-1", Block: true}})
	sim := newSimulation(p, Mutant{}, nil)
	sim.limitTopic("topic-0", rate)
	sim.bulk(int(length/time.Second)*rate*3/2, func(int) *kind { return &p.kinds[0] })
	sim.load(20*time.Millisecond, sim.now+length, func(int) *kind { return &p.kinds[1] })
	for range p.relays {
		sim.join(false)
	}
	limited, late := int64(0), int64(0)
	sim.broker.sent = func(publish *core.Publish) {
		if publish.Topic == "topic-0" {
			limited++
		} else if age := sim.now - publish.Event.CreatedAt.Sub(epoch); age > p.config.Lease+5*time.Second { // of a dead relay
			late++
		}
	}
	for range 4 {
		sim.pass(length / 4)
		sim.relays[len(sim.relays)-1].kill()
		sim.join(false)
	}
	sent := limited
	sim.limitTopic("topic-0", 0)
	began := sim.now
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		atMost("limited_sent", sent, int64(length/time.Second)*rate+rate/10+4),
		atLeast("limited_sent_at_least", sent, int64(length/time.Second)*rate/2),
		exactly("limited_others_late", late, 0),
		atMost("limited_rest_seconds", int64((sim.now-began)/time.Second), 60),
		exactly("limited_charged", sim.spent(), 0),
		exactly("limited_undelivered", int64(verdict.Count(check.Committed)-verdict.Count(check.DeliveredDistinct)), 0),
		exactly("limited_wrong", wrong, 0),
	}
}
