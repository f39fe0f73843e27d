package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// timedFaults are the faults that happen at a time of their own.
var timedFaults = [...]struct {
	fault Fault
	do    func(sim *Simulation) bool // false: there was nothing to do it to
}{
	{DatabaseRestart, (*Simulation).restartDatabase},
	{Standby, (*Simulation).leadToStandby},
	{LeaseLost, (*Simulation).expireLease},
	{ClockForward, func(sim *Simulation) bool { return sim.turnClock(sim.span(time.Second, 2*sim.plan.config.Lease)) }},
	{ClockBack, func(sim *Simulation) bool { return sim.turnClock(-sim.span(time.Second, sim.plan.config.Lease)) }},
	{RelayKilled, (*Simulation).killOne},
	{RelayPaused, (*Simulation).pauseOne},
	{RelayStopped, (*Simulation).stopOne},
	{TopicDown, func(sim *Simulation) bool {
		return sim.breakTopics(sim.plan.topics[sim.rand.IntN(len(sim.plan.topics))], false)
	}},
	{AllDown, func(sim *Simulation) bool { return sim.breakTopics("", false) }},
	{QuotaSpent, func(sim *Simulation) bool {
		return sim.breakTopics(sim.plan.topics[sim.rand.IntN(len(sim.plan.topics))], true)
	}},
	{TopicRejects, (*Simulation).rejectAll},
	{BadDeploy, (*Simulation).deployBadly},
	{OperatorPaused, (*Simulation).pauseSome},
	{Failover, (*Simulation).fallBehind},
	{BackendKilled, (*Simulation).killBackend},
}

// scheduleFaults plans all of them, again and again.
func (sim *Simulation) scheduleFaults() {
	for _, s := range timedFaults {
		if every := sim.plan.every[s.fault]; every > 0 {
			sim.repeatFault(every, s.fault, s.do)
		}
	}
}

func (sim *Simulation) repeatFault(every time.Duration, fault Fault, do func(sim *Simulation) bool) {
	sim.after(sim.soon(every), func() {
		if sim.healed {
			return
		}
		if do(sim) {
			sim.count(fault)
		}
		sim.repeatFault(every, fault, do)
	})
}

func (sim *Simulation) leadToStandby() bool {
	relay := sim.anyone()
	if relay == nil || sim.now < sim.standbyEnd {
		return false
	}
	sim.standbyFor, sim.standbyEnd = relay, sim.now+sim.soon(sim.plan.config.Lease/2)
	return true
}

// expireLease ends the lease of a relay that holds lanes.
func (sim *Simulation) expireLease() bool {
	lanes := sim.store.Lanes()
	lane := lanes[sim.rand.IntN(len(lanes))]
	if lane.Owner == (outbox.ID{}) {
		return false
	}
	sim.store.ExpireRelay(lane.Owner)
	sim.record.jumped(sim.owners[lane.Owner], sim.plan.config.Lease)
	sim.record.moment(check.LeaseLost, "", outbox.ID{})
	return true
}

func (sim *Simulation) turnClock(by time.Duration) bool {
	sim.offset += by
	if by > 0 {
		sim.record.jumped(everybody, by)
	}
	return true
}

// anyone picks a relay that runs.
func (sim *Simulation) anyone() *relayProcess {
	var list []*relayProcess
	for _, relay := range sim.relays {
		if !relay.gone && !relay.stopping && relay.paused <= sim.now {
			list = append(list, relay)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[sim.rand.IntN(len(list))]
}

func (sim *Simulation) killOne() bool {
	relay := sim.anyone()
	if relay == nil {
		return false
	}
	relay.kill()
	return true
}

func (sim *Simulation) pauseOne() bool {
	relay := sim.anyone()
	if relay == nil {
		return false
	}
	relay.pause(sim.plan.config.Lease + sim.soon(sim.plan.config.Lease/2))
	return true
}

func (sim *Simulation) stopOne() bool {
	relay := sim.anyone()
	if relay == nil {
		return false
	}
	relay.stop()
	return true
}

// breakTopics lets a topic, or all of them, be out of order for a while.
func (sim *Simulation) breakTopics(topic string, quota bool) bool {
	d := sim.span(sim.plan.config.Deadline, 3*sim.plan.config.Lease)
	o := outage{until: sim.now + d, hangs: sim.chance(0.3) && !quota, quota: quota}
	kind := check.BrokerDown
	if quota {
		kind = check.Quota
		o.retryAfter = sim.span(10*time.Millisecond, time.Second)
	}
	for _, name := range sim.plan.topics {
		if topic != "" && name != topic {
			continue
		}
		if now := sim.broker.topics[name]; now != nil && now.until > sim.now {
			continue
		}
		mine := o
		sim.broker.topics[name] = &mine
		// What the broker took before may still be acknowledged for a while.
		from := sim.now + sim.plan.config.Deadline + sim.broker.latency
		sim.queue.plan(mine.until, func() bool {
			if end := min(mine.until, sim.now); from < end {
				sim.record.fault(check.Fault{Kind: kind, Topic: name, From: at(from), To: at(end)})
			}
			return false
		})
	}
	return true
}

// rejectAll lets a topic refuse every message for a while. Few are charged before that is seen, which is in order.
func (sim *Simulation) rejectAll() bool {
	name := sim.plan.topics[sim.rand.IntN(len(sim.plan.topics))]
	if now := sim.broker.topics[name]; now != nil && now.until > sim.now {
		return false
	}
	until := sim.now + sim.span(sim.plan.config.Deadline, 3*sim.plan.config.Lease)
	sim.broker.topics[name] = &outage{until: until, rejects: true}
	return true
}

// deployBadly lets all events of a type break their contract for a while.
func (sim *Simulation) deployBadly() bool {
	k := &sim.plan.kinds[sim.rand.IntN(len(sim.plan.kinds))]
	sim.broker.broken[k.name] = sim.now + sim.span(time.Second, 2*sim.plan.config.Lease)
	return true
}
