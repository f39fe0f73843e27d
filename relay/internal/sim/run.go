package sim

import (
	"fmt"
	"io"
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
	Verdict  *check.Verdict
	Problems []string // what the judge cannot know
}

// Deaths counts dead letters by what the contract says about what comes behind.
type Deaths struct {
	Blocked, Passed int // it waits, it goes on
}

// Pass tells whether nothing was broken.
func (r *Result) Pass() bool {
	return r.Verdict != nil && len(r.Problems) == 0 && (r.Verdict.Pass() || r.Verdict.Count(check.Committed) == 0 && zero(r.Verdict))
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
func Run(seed uint64, steps int, plant Plant, trace io.Writer) (result Result) {
	w := newWorld(draw(seed, steps), plant, trace)
	result.Seed = seed
	defer func() {
		if r := recover(); r != nil {
			result.Problems = append(result.Problems, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
		result.Steps, result.Tally = w.steps, w.tally
		result.Problems = append(result.Problems, w.problems...)
	}()
	w.live()
	w.heal()
	w.drain()
	w.leave()
	w.judgeAlone()
	for _, letter := range w.store.Letters() {
		if letter.Blocking {
			result.Deaths.Blocked++
		} else {
			result.Deaths.Passed++
		}
	}
	result.Verdict = w.record.end(true)
	return result
}

// live lets everybody do what they do, until there were enough steps and enough time.
func (w *World) live() {
	w.logf("plan %+v", *w.plan)
	for i := range w.plan.relays {
		w.after(w.soon(2*time.Second), func() { w.fleet(i < w.plan.old) })
	}
	w.producing = true
	for range w.plan.producers {
		w.produce()
	}
	w.strike()
	w.operate()
	least := w.now + w.plan.time
	w.run(w.now+24*time.Hour, func() bool {
		enough := w.steps >= w.plan.steps && w.now >= least
		w.producing = w.producing && !enough
		return enough && w.poisonDead()
	})
}

// fleet keeps one place of the fleet filled: when a relay is gone another one comes.
func (w *World) fleet(old bool) {
	l := w.join(old)
	var look func()
	look = func() {
		if w.stopped {
			return
		}
		if !l.gone {
			w.queue.plan(w.now+w.plan.config.Lease/4, func() bool { look(); return false })
			return
		}
		w.after(w.soon(w.plan.config.Lease/2), func() {
			if !w.stopped {
				w.fleet(old)
			}
		})
	}
	look()
}

// mostKills is how many relays an event may kill before it must be dead. Six would do if nothing else
// moved in its lane; every event that is settled before it makes the next owners bold again.
const mostKills = 40

// poisonDead tells whether every event that has killed is dead, or has had its chances.
func (w *World) poisonDead() bool {
	for id, t := range w.broker.traits {
		if !t.poison || t.kills == 0 || t.kills > mostKills {
			continue
		}
		if e, exists := w.store.Event(id); exists && e.State <= core.Waiting && w.now < start+w.plan.time+100*w.plan.config.Lease {
			return false
		}
	}
	return true
}

// heal ends all faults.
func (w *World) heal() {
	w.logf("all faults are over")
	w.judgePoison()
	w.healed, w.producing = true, false
	if w.offset < 0 { // a clock that was set back often enough makes a lease that outlasts the drain
		w.turnClock(-w.offset)
	}
	for _, pause := range w.store.Pauses() {
		w.resumeScope(pause.Scope, pause.Name)
	}
	w.broker.broken = map[string]time.Duration{}
	for _, t := range w.broker.traits {
		*t = trait{}
	}
	for _, topic := range w.plan.topics {
		if o := w.broker.topics[topic]; o != nil {
			o.until = min(o.until, w.now)
		}
	}
	if w.tally[BadDeploy] == 0 {
		return
	}
	for _, l := range w.lives { // the fix is deployed: a new owner releases what is parked
		if !l.gone && !l.stopping {
			l.stop()
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
func (w *World) drain() {
	w.quietFrom = w.now
	w.tidyAgain()
	checked := w.now
	w.run(w.now+longest, func() bool {
		if w.now-checked < time.Second/2 {
			return false
		}
		checked = w.now
		return w.writing == 0 && w.atRest()
	})
	if !w.complete() {
		w.problemf("a place of the fleet stayed empty while the others had %v to finish", longest)
	}
	w.logf("drained, %d open", w.store.Open())
}

// tidyAgain looks every second for what operators have to do.
func (w *World) tidyAgain() {
	w.tidy()
	w.free(func(row memstore.EventRow) bool {
		return row.State == core.Parked && !w.unknown(row.Type) && w.now-w.quietFrom > quiet/2
	})
	w.after(time.Second, func() {
		if !w.stopped {
			w.tidyAgain()
		}
	})
}

// complete tells whether every place of the fleet has a relay that runs. One that is missing may be the only one that
// knows a type.
func (w *World) complete() bool {
	running := 0
	for _, l := range w.lives {
		if !l.gone && !l.stopping && l.paused <= w.now {
			running++
		}
	}
	return running >= w.plan.relays
}

// atRest tells whether relays and operators have done what they can, or do not do it.
func (w *World) atRest() bool {
	if !w.complete() {
		w.quietFrom = w.now
		return false
	}
	still := w.now - w.quietFrom
	if still > quiet {
		return true
	}
	open, moving := 0, 0
	for _, row := range w.store.Events() {
		switch row.State {
		case core.Ready, core.Retrying:
			moving++
		case core.Waiting, core.Parked:
			open++
		case core.DeadBlocking:
			if w.plan.ending != leaveAll {
				moving++
			}
		case core.Dead, core.Published, core.Discarded:
		}
	}
	return moving == 0 && (open == 0 || still > quietSince)
}

// leave stops all relays. They must be gone when their time is up.
func (w *World) leave() {
	w.stopped = true
	for _, l := range w.lives {
		if !l.gone && !l.stopping {
			l.stop()
		}
	}
	gone := func() bool {
		for _, l := range w.lives {
			if !l.gone {
				return false
			}
		}
		return true
	}
	last := w.now
	for _, l := range w.lives {
		last = max(last, l.paused)
	}
	if !w.run(last+w.plan.config.Drain+w.plan.config.Lease, gone) {
		w.problemf("a relay that was asked to stop did not")
	}
}
