package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// outageOfDays: a broker that is down for 72 hours costs nobody anything. In the first third it does not
// even answer.
func outageOfDays(short bool) []Figure {
	events := 100_000
	p := faultless(72)
	// a probe reads so much, and there are tens of thousands
	p.relays, p.lanes, p.config.Batch, p.config.MaxInFlight = 2, 16, 50, 200
	if short {
		events, p.relays, p.lanes, p.config.Batch, p.config.MaxInFlight = 10_000, 1, 4, 10, 40
	}
	p.aggregates = events / 50
	p.config.Lease, p.config.Poll, p.config.FencePeriod, p.config.HeldPeriod = time.Minute, 10*time.Second, 5*time.Second,
		10*time.Second
	p.config.SweepPeriod = 10 * time.Minute
	sim := newSimulation(p, Mutant{}, nil)
	end := sim.now + 72*time.Hour
	sim.breakTopic("topic-0", end, true)
	sim.bulk(events, func(int) *kind { return &p.kinds[0] })
	for range p.relays {
		sim.join(false)
	}
	sim.pass(24 * time.Hour)
	sim.broker.topics["topic-0"].hangs = false
	sim.pass(end - sim.now)
	charged, dead := sim.spent(), int64(len(sim.store.Letters()))
	wrong, verdict := sim.finish(6 * time.Hour)
	return []Figure{
		exactly("outage_hours", int64((end-start)/time.Hour), 72),
		exactly("outage_events", int64(events), int64(verdict.Count(check.Committed))),
		exactly("outage_delivered", int64(verdict.Count(check.DeliveredDistinct)), int64(events)),
		exactly("outage_dead", dead+int64(verdict.Count(check.DeadLettered)), 0),
		exactly("outage_charged", charged+sim.spent(), 0),
		exactly("outage_wrong", wrong, 0),
	}
}

// herdAfterOutage: a relay with a backlog publishes after an outage at the rate of before, not faster.
func herdAfterOutage(short bool) []Figure {
	minute := time.Minute
	if short {
		minute = 10 * time.Second
	}
	p := faultless(6)
	p.aggregates = 1000
	p.config.Concurrency = 4
	sim := newSimulation(p, Mutant{}, nil)
	sim.bulk(int(10*minute/time.Second)*400, func(int) *kind { return &p.kinds[0] })
	sent := 0
	sim.broker.sent = func(*core.Publish) { sent++ }
	sim.join(false)
	sim.pass(5 * time.Second)
	sent = 0
	sim.pass(minute)
	steady := sent
	sim.breakTopic("topic-0", sim.now+10*minute, false)
	sent = 0
	sim.pass(10 * minute)
	probes, peak := sent, 0
	first := 0
	for range int(minute / time.Second) {
		sent = 0
		sim.pass(time.Second)
		first += sent
		peak = max(peak, sent)
	}
	seconds := int(minute / time.Second)
	wrong, _ := sim.finish(time.Hour)
	return []Figure{
		atLeast("herd_steady_per_second", int64(steady/seconds), 50),
		{"herd_first_minute_percent", int64(100 * first / max(1, steady)), first > 0 && first <= 2*steady},
		{"herd_peak_percent", int64(100 * peak * seconds / max(1, steady)), peak > 0 && peak*seconds <= 2*steady},
		atMost("herd_probes_per_minute", int64(probes)*int64(time.Minute)/int64(10*minute), 60),
		exactly("herd_wrong", wrong, 0),
	}
}

// oneTopicDown: what goes to other topics is delivered as if nothing had happened.
func oneTopicDown(short bool) []Figure {
	length := 5 * time.Minute
	if short {
		length = time.Minute
	}
	measure := func(down bool) (delivered, late, wrong int64) {
		p := faultless(10)
		p.aggregates = 200
		p.topics = append(p.topics, "topic-1")
		p.kinds = append(p.kinds, kind{name: "type-1", Route: core.Route{Topic: "topic-1", Block: true}})
		sim := newSimulation(p, Mutant{}, nil)
		end := sim.now + 20*time.Second + length
		sim.load(5*time.Millisecond, end, func(i int) *kind { return &p.kinds[i%2] })
		sim.join(false)
		sim.pass(20 * time.Second)
		if down {
			sim.breakTopic("topic-1", sim.now+length, true)
		}
		sim.broker.taken = func(e *core.Event, topic string) {
			if topic == "topic-0" {
				delivered++
				if sim.now-sim.bornAt(e) > time.Second {
					late++
				}
			}
		}
		sim.pass(length)
		sim.broker.taken = nil
		wrong, _ = sim.finish(time.Hour)
		return delivered, late, wrong
	}
	without, _, wrong := measure(false)
	with, late, wrongDown := measure(true)
	return []Figure{
		{"one_topic_down_progress_percent", 100 * with / max(1, without), with*100 >= 90*without && without > 1000},
		atMost("one_topic_down_late_per_mille", 1000*late/max(1, with), 10),
		exactly("one_topic_down_wrong", wrong+wrongDown, 0),
	}
}

// bornAt is when an event was made, from its id.
func (sim *Simulation) bornAt(e *core.Event) time.Duration {
	ms := uint64(0)
	for _, b := range e.ID[:6] {
		ms = ms<<8 | uint64(b)
	}
	return time.Duration(ms-1_700_000_000_000) * time.Millisecond
}

// topicThatRejects: an hour in which a topic refuses every message, as one does to which a schema was attached by
// mistake, costs no event its life, and those of other topics notice nothing.
func topicThatRejects(short bool) []Figure {
	length := time.Hour
	if short {
		length = 15 * time.Minute
	}
	p := faultless(9)
	p.aggregates = 100
	p.topics = append(p.topics, "topic-1")
	p.kinds = append(p.kinds, kind{name: "type-1", Route: core.Route{Topic: "topic-1", Block: true}})
	sim := newSimulation(p, Mutant{}, nil)
	for range 2 {
		sim.join(false)
	}
	end := sim.now + length
	sim.broker.topics["topic-0"] = &outage{until: end, rejects: true}
	sim.load(100*time.Millisecond, end, func(i int) *kind { return &p.kinds[i%2] })
	sim.pass(length)
	charged, dead, others := sim.spent(), int64(len(sim.store.Letters())), int64(sim.record.arrivals)
	paused := int64(0)
	for _, relay := range sim.relays {
		if relay.pausedAt["topic-0"] > 0 {
			paused++
		}
	}
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		exactly("rejections_dead", dead+int64(verdict.Count(check.DeadLettered)), 0),
		atMost("rejections_charged", charged, 4), // of each relay, what was refused before it could know
		exactly("rejections_paused", paused, 2),
		atLeast("rejections_others", others, int64(length/(200*time.Millisecond))-10),
		exactly("rejections_undelivered", int64(verdict.Count(check.Committed)-verdict.Count(check.DeliveredDistinct)), 0),
		exactly("rejections_wrong", wrong, 0),
	}
}
