package sim

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// relayProcess is one process of a relay: from its start to its end, however it ends.
type relayProcess struct {
	sim  *Simulation
	name string
	old  bool
	core *core.Core
	gone bool // ended, or killed
	// stopping tells that it was asked to stop, and until when it may finish what is in flight.
	stopping bool
	mustEnd  time.Duration
	paused   time.Duration // until then; 0: it runs
	inbox    []func()
	wake     uint64 // the number of the last wake-up that counts
	calls    map[core.Op]int
	pauses   []core.Pause             // that stood when its last heartbeat was answered
	pausedAt map[string]time.Duration // when it paused a topic last
	limits   []core.Limit             // as pauses
	sent     map[string]*limitWatch   // to limited topics
}

// join starts a relay.
func (sim *Simulation) join(old bool) *relayProcess {
	sim.born++
	relay := &relayProcess{
		sim: sim, name: fmt.Sprintf("relay-%d", sim.born), old: old, calls: map[core.Op]int{},
		pausedAt: map[string]time.Duration{}, sent: map[string]*limitWatch{},
	}
	config := sim.plan.config
	config.Name, config.Routes = relay.name, registry{sim.plan, old}
	config.Random = sim.rand.Uint64
	config.Observe = func(s core.Step) { sim.record.observe(relay, s) }
	relay.core = core.New(config)
	sim.relays = append(sim.relays, relay)
	sim.logf("%s joins, old=%t", relay.name, old)
	relay.act()
	return relay
}

// input hands something to the core, or keeps it until the pause is over.
func (relay *relayProcess) input(apply func()) {
	switch {
	case relay.gone:
	case relay.paused > relay.sim.now:
		relay.inbox = append(relay.inbox, apply)
	default:
		apply()
		relay.act()
	}
}

// act does what the core wants done.
func (relay *relayProcess) act() {
	sim := relay.sim
	if relay.gone || relay.paused > sim.now {
		return
	}
	actions := relay.core.Act(sim.now)
	for _, call := range actions.Calls {
		relay.calls[call.Op]++
		relay.call(call)
	}
	sim.broker.takeAll(relay, actions.Publish)
	if relay.gone { // one of them was poison
		return
	}
	if actions.Stopped {
		sim.logf("%s has stopped", relay.name)
		if !relay.stopping {
			sim.problemf("%s stopped, and nobody asked it to", relay.name)
		}
		if counts := relay.core.Counts(); sim.now < relay.mustEnd && counts.Lanes+counts.InFlight > 0 {
			sim.problemf("%s stopped in time, and has %d lanes and %d events", relay.name, counts.Lanes, counts.InFlight)
		}
		relay.gone = true
		return
	}
	relay.wake++
	number := relay.wake
	if actions.Wake == math.MaxInt64 { // never
		return
	}
	sim.queue.plan(max(actions.Wake, sim.now), func() bool {
		if relay.gone || relay.wake != number {
			return false
		}
		relay.act()
		return true
	})
}

// call runs a call of the store a little later, and tells the core a little after that. One that takes too
// long is given up, as shells do; the database may do it all the same, at any time.
func (relay *relayProcess) call(call core.Call) {
	sim := relay.sim
	sent := sim.incarnation
	before, behind := sim.span(20*time.Microsecond, 2*time.Millisecond), sim.span(20*time.Microsecond, time.Millisecond)
	if sim.hit(StoreSlow) {
		slow := sim.soon(sim.plan.config.Lease / 2)
		if sim.chance(0.5) {
			before += slow
		} else {
			behind += slow
		}
	}
	limit := sim.plan.config.Lease / 3
	if sim.belated == call.Op {
		before += limit
	}
	givenUp := before+behind > limit
	if givenUp {
		sim.after(limit, func() {
			relay.complete(sim.now,
				call.Run(context.Background(), &memstore.Faulty{Plan: func(memstore.Operation) memstore.Fault {
					return memstore.NotDone
				}}))
		})
	}
	run := func(connection *connection) {
		store := relay.faulty(call.Op, sent, connection)
		if relay.gone && sim.chance(0.5) {
			return // it died before it was sent
		}
		ran := sim.now
		sim.logf("%s %s", relay.name, call.Op)
		var apply func(time.Duration)
		answered := &heartbeatStore{Store: store}
		pauses, limits := sim.store.Pauses(), sim.store.Limits()
		sim.onStandby(relay, func() { apply = call.Run(context.Background(), answered) })
		if connection.late {
			behind = limit
		}
		if connection.took && (connection.lost || givenUp) {
			sim.takesLost++
		}
		if !givenUp {
			sim.after(behind, func() {
				relay.complete(ran, func(now time.Duration) {
					if answered.beat {
						relay.pauses, relay.limits = pauses, limits
					}
					apply(now)
				})
			})
		}
	}
	sim.after(before, func() {
		store := &connection{Store: sim.store, relay: relay}
		if call.Op != core.OpFence {
			run(store)
			return
		}
		// A fence is two statements, and others write in between.
		sim.onStandby(relay, store.beginFence)
		sim.after(sim.span(0, 5*time.Millisecond), func() { run(store) })
	})
}

// complete hands the core the answer of a call that was run then.
func (relay *relayProcess) complete(ran time.Duration, complete func(time.Duration)) {
	sim := relay.sim
	relay.input(func() {
		sim.ran = ran
		complete(sim.now)
		sim.ran = 0
	})
}

// kill ends a process without warning. What it has sent may still arrive.
func (relay *relayProcess) kill() {
	sim := relay.sim
	sim.logf("%s is killed", relay.name)
	relay.gone = true
	sim.record.moment(check.Kill, relay.name, outbox.ID{})
}

// pause lets a process stand still.
func (relay *relayProcess) pause(d time.Duration) {
	sim := relay.sim
	relay.paused = sim.now + d
	sim.logf("%s stands still for %v", relay.name, d)
	sim.record.fault(check.Fault{
		Kind: check.Pause, Relay: relay.name, From: at(sim.now), To: at(relay.paused), First: sim.record.next(),
	})
	sim.queue.plan(relay.paused, func() bool {
		if relay.gone {
			return false
		}
		relay.paused = 0
		inbox := relay.inbox
		relay.inbox = nil
		sim.logf("%s goes on", relay.name)
		for _, apply := range inbox {
			relay.input(apply)
		}
		relay.act()
		return true
	})
}

// stop asks a process to end.
func (relay *relayProcess) stop() {
	sim := relay.sim
	relay.stopping = true
	sim.logf("%s is asked to stop", relay.name)
	relay.input(func() {
		relay.mustEnd = sim.now + sim.plan.config.Drain
		relay.core.Stop(sim.now)
	})
}
