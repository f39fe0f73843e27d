package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// Result is what became of one seed.
type Result struct {
	Seed     uint64
	Steps    int
	Tally    Tally
	Deaths   Deaths
	Canceled int // requests
	Limited  int // publishes that kept to a limit of their topic
	// TakesLost counts the takes of requests whose answer their relay never got.
	TakesLost int
	Verdict   *check.Verdict
	Problems  []string // what the checker cannot know
}

// Deaths counts dead letters by what the contract says about what comes behind.
type Deaths struct {
	Blocked, Passed int // it waits, it goes on
}

// Pass tells whether nothing was broken.
func (r *Result) Pass() bool {
	return r.Verdict != nil && len(r.Problems) == 0 &&
		(r.Verdict.Pass() || r.Verdict.Count(check.Committed) == 0 && zero(r.Verdict))
}

// zero tells whether nothing is wrong but that too little happened.
func zero(v *check.Verdict) bool {
	for _, c := range check.Counters() {
		if c.MustBeZero() && v.Count(c) > 0 {
			return false
		}
	}
	return true
}

// Run runs one seed with at least that many steps before its faults end. The trace is for people; nil:
// nobody reads it.
func Run(seed uint64, steps int, mutant Mutant, trace io.Writer) (result Result) {
	sim := newSimulation(draw(seed, steps), mutant, trace)
	result.Seed = seed
	defer func() {
		if r := recover(); r != nil {
			result.Problems = append(result.Problems, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
		result.Steps, result.Tally, result.Limited, result.TakesLost = sim.steps, sim.tally, sim.limited, sim.takesLost
		result.Problems = append(result.Problems, sim.problems...)
	}()
	sim.live()
	sim.heal()
	sim.drain()
	sim.leave()
	sim.checkTheRest()
	for _, letter := range sim.store.Letters() {
		if letter.Blocking {
			result.Deaths.Blocked++
		} else {
			result.Deaths.Passed++
		}
	}
	for _, request := range sim.store.Requests() {
		if request.State == core.RequestCanceled {
			result.Canceled++
		}
	}
	result.Verdict = sim.record.end(true)
	return result
}

// live lets everybody do what they do, until there were enough steps and enough time.
func (sim *Simulation) live() {
	sim.logf("plan %+v", *sim.plan)
	for i := range sim.plan.relays {
		sim.after(sim.soon(2*time.Second), func() { sim.fleet(i < sim.plan.old) })
	}
	sim.producing = true
	for range sim.plan.producers {
		sim.produce()
	}
	sim.scheduleFaults()
	sim.operate()
	sim.redeliverSome(rand.New(rand.NewPCG(sim.plan.seed, 0xc0b2)))
	sim.limitSome(rand.New(rand.NewPCG(sim.plan.seed, 0x11118)))
	least := sim.now + sim.plan.time
	sim.run(sim.now+24*time.Hour, func() bool {
		enough := sim.steps >= sim.plan.steps && sim.now >= least
		sim.producing = sim.producing && !enough
		return enough && sim.poisonDead()
	})
}

// fleet keeps one place of the fleet filled: when a relay is gone another one comes.
func (sim *Simulation) fleet(old bool) {
	relay := sim.join(old)
	var look func()
	look = func() {
		if sim.stopped {
			return
		}
		if !relay.gone {
			sim.queue.plan(sim.now+sim.plan.config.Lease/4, func() bool { look(); return false })
			return
		}
		sim.after(sim.soon(sim.plan.config.Lease/2), func() {
			if !sim.stopped {
				sim.fleet(old)
			}
		})
	}
	look()
}

// mostKills is how many relays an event may kill before it must be dead. Six would do if nothing else
// moved in its lane; every event that is settled before it makes the next owners bold again.
const mostKills = 40

// poisonDead tells whether every event that has killed is dead, or has had its chances.
func (sim *Simulation) poisonDead() bool {
	for id, t := range sim.broker.traits {
		if !t.poison || t.kills == 0 || t.kills > mostKills {
			continue
		}
		if e, exists := sim.store.Event(id); exists && e.State <= core.Waiting &&
			sim.now < start+sim.plan.time+100*sim.plan.config.Lease {
			return false
		}
	}
	return true
}

// heal ends all faults.
func (sim *Simulation) heal() {
	sim.logf("all faults are over")
	sim.checkPoison()
	sim.healed, sim.producing = true, false
	if sim.offset < 0 { // a clock that was set back often enough makes a lease that outlasts the drain
		sim.turnClock(-sim.offset)
	}
	for _, pause := range sim.store.Pauses() {
		sim.resumeScope(pause.Scope, pause.Name)
	}
	for _, limit := range sim.store.Limits() {
		sim.limitTopic(limit.Topic, 0)
	}
	sim.broker.broken = map[string]time.Duration{}
	for _, t := range sim.broker.traits {
		*t = trait{}
	}
	for _, topic := range sim.plan.topics {
		if o := sim.broker.topics[topic]; o != nil {
			o.until = min(o.until, sim.now)
		}
	}
	if sim.tally[BadDeploy] == 0 {
		return
	}
	for _, relay := range sim.relays { // the fix is deployed: a new owner releases what is parked
		if !relay.gone && !relay.stopping {
			relay.stop()
		}
	}
}

// How long nothing must have changed before what is left counts as stuck: longer than every pause that a
// relay makes by itself. What waits for people or for a registry has no pauses but those of a breaker.
const (
	quiet      = 40 * time.Second
	quietSince = 15 * time.Second
)

// longest is how long a drain may take.
const longest = 10 * time.Minute

// drain gives the relays the time to finish.
func (sim *Simulation) drain() {
	sim.quietFrom = sim.now
	sim.tidyAgain()
	checked := sim.now
	sim.run(sim.now+longest, func() bool {
		if sim.now-checked < time.Second/2 {
			return false
		}
		checked = sim.now
		return sim.writing == 0 && sim.atRest()
	})
	if !sim.complete() {
		sim.problemf("a place of the fleet stayed empty while the others had %v to finish", longest)
	}
	sim.logf("drained, %d open", sim.store.Open())
}

// tidyAgain looks every second for what operators have to do.
func (sim *Simulation) tidyAgain() {
	sim.tidy()
	sim.free(func(row memstore.EventRow) bool {
		return row.State == core.Parked && !sim.unknown(row.Type) && sim.now-sim.quietFrom > quiet/2
	})
	sim.after(time.Second, func() {
		if !sim.stopped {
			sim.tidyAgain()
		}
	})
}

// complete tells whether every place of the fleet has a relay that runs. One that is missing may be the only one that
// knows a type.
func (sim *Simulation) complete() bool {
	running := 0
	for _, relay := range sim.relays {
		if !relay.gone && !relay.stopping && relay.paused <= sim.now {
			running++
		}
	}
	return running >= sim.plan.relays
}

// atRest tells whether relays and operators have done what they can, or do not do it.
func (sim *Simulation) atRest() bool {
	if !sim.complete() {
		sim.quietFrom = sim.now
		return false
	}
	still := sim.now - sim.quietFrom
	if still > quiet {
		return true
	}
	open, moving := 0, 0
	for _, row := range sim.store.Events() {
		switch row.State {
		case core.Ready, core.Retrying:
			moving++
		case core.Waiting, core.Parked:
			open++
		case core.DeadBlocking:
			if sim.plan.ending != leaveAll {
				moving++
			}
		case core.Dead, core.Published, core.Discarded:
		}
	}
	for _, request := range sim.store.Requests() {
		if request.State == core.RequestOpen {
			moving++
		}
	}
	return moving == 0 && (open == 0 || still > quietSince)
}

// leave stops all relays. They must be gone when their time is up.
func (sim *Simulation) leave() {
	sim.stopped = true
	for _, relay := range sim.relays {
		if !relay.gone && !relay.stopping {
			relay.stop()
		}
	}
	gone := func() bool {
		for _, relay := range sim.relays {
			if !relay.gone {
				return false
			}
		}
		return true
	}
	last := sim.now
	for _, relay := range sim.relays {
		last = max(last, relay.paused)
	}
	if !sim.run(last+sim.plan.config.Drain+sim.plan.config.Lease, gone) {
		sim.problemf("a relay that was asked to stop did not")
	}
}
