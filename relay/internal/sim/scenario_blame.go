package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// oneBadEvent: one that can never be published among 10,000 healthy ones is the only dead letter.
func oneBadEvent(bool) []Figure {
	p := faultless(1)
	p.aggregates, p.relays = 500, 2
	p.kinds[0].Block = false
	sim := newSimulation(p, Mutant{}, nil)
	events := sim.bulk(10_001, func(int) *kind { return &p.kinds[0] })
	sim.broker.traits[events[4321].ID] = &trait{terminal: true}
	for range p.relays {
		sim.join(false)
	}
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		exactly("one_bad_dead", int64(verdict.Count(check.DeadLettered)), 1),
		exactly("one_bad_delivered", int64(verdict.Count(check.DeliveredDistinct)), 10_000),
		exactly("one_bad_wrong", wrong, 0),
	}
}

// eventThatHangs: one that is never answered while others pass is dead after its attempts.
func eventThatHangs(bool) []Figure {
	p := faultless(2)
	p.aggregates = 50
	p.config.MaxAttempts, p.config.MaxDelay = 5, time.Minute
	sim := newSimulation(p, Mutant{}, nil)
	bad := sim.bulk(1, func(int) *kind { return &p.kinds[0] })[0]
	sim.broker.traits[bad.ID] = &trait{hangs: true}
	sim.load(200*time.Millisecond, sim.now+20*time.Minute, func(int) *kind { return &p.kinds[0] })
	sim.join(false)
	sim.run(sim.now+20*time.Minute, func() bool { return len(sim.store.Letters()) > 0 })
	took := sim.now - start
	attempts, reason := int64(0), ""
	for _, letter := range sim.store.Letters() {
		attempts, reason = int64(letter.Attempts), letter.Reason
	}
	sim.broker.traits[bad.ID] = nil
	sim.pass(20*time.Minute - took)
	p.ending = skipAll
	sim.tidy()
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		exactly("timeout_dead", int64(verdict.Count(check.DeadLettered)), 1),
		{"timeout_attempts", attempts, attempts == 5 && reason == "max_attempts"},
		atMost("timeout_seconds", int64(took/time.Second), 1200),
		exactly("timeout_wrong", wrong, 0),
	}
}

// manyBadEvents: twenty aggregates whose events are always refused, in a topic with little else. They die, all of them,
// and what is good waits for none of them for long.
func manyBadEvents(bool) []Figure {
	const bad = 20
	p := faultless(10)
	p.aggregates = 200
	p.config.MaxAttempts, p.config.MaxDelay = 5, time.Minute
	sim := newSimulation(p, Mutant{}, nil)
	for _, event := range sim.bulk(bad, func(int) *kind { return &p.kinds[0] }) {
		sim.broker.traits[event.ID] = &trait{rejects: 1_000_000}
	}
	sim.join(false)
	slowest, events := time.Duration(0), 0
	for ; len(sim.store.Letters()) < bad && events < 2000; events++ {
		sim.pass(10 * time.Second)
		if sim.emitted%uint64(p.aggregates) < bad {
			sim.emitted += bad // those of the first ones wait behind what is refused
		}
		arrived := sim.record.arrivals
		begin := sim.now
		sim.bulk(1, func(int) *kind { return &p.kinds[0] })
		sim.run(sim.now+time.Hour, func() bool { return sim.record.arrivals > arrived })
		slowest = max(slowest, sim.now-begin)
	}
	dead := int64(len(sim.store.Letters()))
	p.ending = skipAll
	sim.tidy()
	wrong, _ := sim.finish(time.Hour)
	return []Figure{
		exactly("rejected_dead", dead, bad),
		atMost("rejected_good_events", int64(events), 1000),
		atMost("rejected_slowest_seconds", int64(slowest/time.Second), 30),
		exactly("rejected_wrong", wrong, 0),
	}
}

// crowdOfBadEvents: a thousand aggregates whose events are always refused come at once, in front of good ones, which
// notice nothing. All of the bad ones die in the end.
func crowdOfBadEvents(bool) []Figure {
	const bad = 1000
	p := faultless(11)
	p.aggregates = 10 * bad
	p.config.Concurrency, p.config.MaxInFlight, p.config.Window = 256, 5000, 50_000
	p.config.MaxAttempts, p.config.MaxDelay = 5, time.Minute
	sim := newSimulation(p, Mutant{}, nil)
	for _, event := range sim.bulk(bad, func(int) *kind { return &p.kinds[0] }) {
		sim.broker.traits[event.ID] = &trait{rejects: 1_000_000}
	}
	sim.join(false)
	const length, pace = 7 * time.Minute, 50 * time.Millisecond
	sim.load(pace, sim.now+length, func(int) *kind { return &p.kinds[0] })
	slowest := int64(0)
	for range length / (10 * time.Second) {
		sim.pass(10 * time.Second)
		slowest = max(slowest, int64(sim.emitted)-bad-int64(sim.record.arrivals))
	}
	dead := int64(len(sim.store.Letters()))
	p.ending = skipAll
	sim.tidy()
	wrong, _ := sim.finish(time.Hour)
	return []Figure{
		exactly("crowd_dead", dead, bad),
		atMost("crowd_behind", slowest, 10),
		exactly("crowd_wrong", wrong, 0),
	}
}

// oldRegistry: a relay that does not know a new type kills nothing, and the one that does publishes all.
func oldRegistry(short bool) []Figure {
	events := 5000
	if short {
		events = 1000
	}
	p := faultless(3)
	p.aggregates = 100
	p.kinds = append(p.kinds, kind{name: "type-1", Route: core.Route{Topic: "topic-0", Block: true}, new: true})
	sim := newSimulation(p, Mutant{}, nil)
	sim.join(true)
	sim.load(10*time.Millisecond, sim.now+time.Duration(events)*10*time.Millisecond, func(i int) *kind {
		return &p.kinds[i%5/4]
	})
	sim.pass(20 * time.Second)
	parked := int64(0)
	for _, row := range sim.store.Events() {
		if row.State == core.Parked {
			parked++
		}
	}
	sim.join(false)
	sim.pass(time.Duration(events) * 10 * time.Millisecond)
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		atLeast("old_registry_parked", parked, 10),
		exactly("old_registry_dead", int64(verdict.Count(check.DeadLettered)), 0),
		exactly("old_registry_undelivered", int64(verdict.Count(check.Committed)-verdict.Count(check.DeliveredDistinct)), 0),
		exactly("old_registry_charged", sim.spent(), 0),
		exactly("old_registry_wrong", wrong, 0),
	}
}

// mostDeadOfADeploy is how many events a relay may bury before it sees that they are all like that: the
// number that its breaker waits for, and what is in flight then.
const mostDeadOfADeploy = 20

// badDeploy: when all events of a type break their contract the type pauses, and they are released later.
func badDeploy(short bool) []Figure {
	events := 10_000
	if short {
		events = 2000
	}
	p := faultless(4)
	p.aggregates = 1000
	p.topics = append(p.topics, "topic-1")
	p.kinds = append(p.kinds, kind{name: "type-1", Route: core.Route{Topic: "topic-1", Block: true}})
	sim := newSimulation(p, Mutant{}, nil)
	sim.broker.broken["type-0"] = sim.now + 1000*time.Hour
	sim.bulk(events, func(int) *kind { return &p.kinds[0] })
	sim.bulk(events/10, func(int) *kind { return &p.kinds[1] })
	sim.join(false)
	sim.pass(10 * time.Minute)
	dead := int64(len(sim.store.Letters()))
	others := int64(sim.record.arrivals)
	for _, relay := range sim.relays { // the fix is deployed
		relay.stop()
	}
	sim.broker.broken = map[string]time.Duration{}
	sim.join(false)
	p.ending = redriveAll
	sim.tidyAgain()
	sim.pass(10 * time.Minute)
	wrong, verdict := sim.finish(time.Hour)
	return []Figure{
		atMost("bad_deploy_dead", dead, mostDeadOfADeploy),
		exactly("bad_deploy_others_delivered", others, int64(events/10)),
		exactly("bad_deploy_undelivered", int64(verdict.Count(check.Committed)-verdict.Count(check.DeliveredDistinct)), 0),
		exactly("bad_deploy_wrong", wrong, 0),
	}
}
