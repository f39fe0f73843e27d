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
	p := calm(12)
	p.aggregates = 2000
	p.topics = append(p.topics, "topic-1")
	p.kinds = append(p.kinds, kind{name: "type-1", Route: core.Route{Topic: "topic-1", Block: true}})
	w := newWorld(p, Plant{}, nil)
	w.broker.slow = map[string]time.Duration{"topic-0": time.Second}
	w.bulk(backlog, func(int) *kind { return &p.kinds[0] })
	met, longest := 0, time.Duration(0)
	w.broker.taken = func(e *core.Event, topic string) {
		if topic == "topic-1" {
			met++
			longest = max(longest, w.now-w.bornAt(e))
		}
	}
	for i := range relays {
		l := w.join(false)
		w.pass(w.span(2*time.Second, 12*time.Second))
		w.bulk(1, func(int) *kind { return &p.kinds[1] })
		w.run(w.now+10*time.Minute, func() bool { return met > i })
		l.stop()
		w.run(w.now+time.Minute, func() bool { return l.gone })
	}
	w.broker.taken, w.broker.slow = nil, nil
	w.join(false)
	wrong, verdict := w.finish(time.Hour)
	return []Figure{
		exactly("uneven_met_late", int64(met), int64(relays)),
		atMost("uneven_longest_wait_ms", longest.Milliseconds(), 5000),
		exactly("uneven_dead", int64(verdict.Count(check.DeadLettered)), 0),
		exactly("uneven_wrong", wrong, 0),
	}
}
