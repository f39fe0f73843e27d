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

// life is one process life of a relay: from its start to its end, however it ends.
type life struct {
	world *World
	name  string
	id    outbox.ID
	old   bool
	core  *core.Core
	gone  bool // ended, or killed
	// stopping tells that it was asked to stop, and until when it may finish what is in flight.
	stopping bool
	mustEnd  time.Duration
	paused   time.Duration // until then; 0: it runs
	inbox    []func()
	wake     uint64 // the number of the last wake-up that counts
	calls    map[core.Op]int
	pauses   []core.Pause             // that stood when its last heartbeat was answered
	pausedAt map[string]time.Duration // when it paused a topic last
}

// join starts a relay.
func (w *World) join(old bool) *life {
	w.born++
	l := &life{world: w, name: fmt.Sprintf("relay-%d", w.born), old: old, calls: map[core.Op]int{}, pausedAt: map[string]time.Duration{}}
	l.id[0], l.id[6], l.id[8], l.id[15] = 0xee, 0x70, 0x80, byte(w.born)
	l.id[14] = byte(w.born >> 8)
	config := w.plan.config
	config.Relay, config.Name, config.Routes = l.id, l.name, registry{w.plan, old}
	config.Random = w.rand.Uint64
	config.Observe = func(s core.Step) { w.record.observe(l, s) }
	l.core = core.New(config)
	w.lives = append(w.lives, l)
	w.logf("%s joins, old=%t", l.name, old)
	l.act()
	return l
}

// input hands something to the core, or keeps it until the pause is over.
func (l *life) input(tell func()) {
	switch {
	case l.gone:
	case l.paused > l.world.now:
		l.inbox = append(l.inbox, tell)
	default:
		tell()
		l.act()
	}
}

// act does what the core wants done.
func (l *life) act() {
	w := l.world
	if l.gone || l.paused > w.now {
		return
	}
	actions := l.core.Act(w.now)
	for _, call := range actions.Calls {
		l.calls[call.Op]++
		l.call(call)
	}
	w.broker.takeAll(l, actions.Publish)
	if l.gone { // one of them was poison
		return
	}
	if actions.Stopped {
		w.logf("%s has stopped", l.name)
		if !l.stopping {
			w.problemf("%s stopped, and nobody asked it to", l.name)
		}
		if counts := l.core.Counts(); w.now < l.mustEnd && counts.Lanes+counts.InFlight > 0 {
			w.problemf("%s stopped in time, and has %d lanes and %d events", l.name, counts.Lanes, counts.InFlight)
		}
		l.gone = true
		return
	}
	l.wake++
	number := l.wake
	if actions.Wake == math.MaxInt64 { // never
		return
	}
	w.queue.plan(max(actions.Wake, w.now), func() bool {
		if l.gone || l.wake != number {
			return false
		}
		l.act()
		return true
	})
}

// call runs a call of the store a little later, and tells the core a little after that. One that takes too
// long is given up, as shells do; the database may do it all the same, at any time.
func (l *life) call(call core.Call) {
	w := l.world
	sent := w.incarnation
	before, behind := w.span(20*time.Microsecond, 2*time.Millisecond), w.span(20*time.Microsecond, time.Millisecond)
	if w.hit(StoreSlow) {
		slow := w.soon(w.plan.config.Lease / 2)
		if w.chance(0.5) {
			before += slow
		} else {
			behind += slow
		}
	}
	limit := w.plan.config.Lease / 3
	givenUp := before+behind > limit
	if givenUp {
		w.after(limit, func() {
			l.tell(w.now, call.Run(context.Background(), &memstore.Faulty{Plan: func(memstore.Operation) memstore.Fault { return memstore.NotDone }}))
		})
	}
	run := func(connection *connection) {
		store := l.faulty(call.Op, sent, connection)
		if l.gone && w.chance(0.5) {
			return // it died before it was sent
		}
		ran := w.now
		w.logf("%s %s", l.name, call.Op)
		var tell func(time.Duration)
		heard := &hearing{Store: store}
		pauses := w.store.Pauses()
		w.onStandby(l, func() { tell = call.Run(context.Background(), heard) })
		if connection.late {
			behind = limit
		}
		if !givenUp {
			w.after(behind, func() {
				l.tell(ran, func(now time.Duration) {
					if heard.beat {
						l.pauses = pauses
					}
					tell(now)
				})
			})
		}
	}
	w.after(before, func() {
		store := &connection{Store: w.store, life: l}
		if call.Op != core.OpFence {
			run(store)
			return
		}
		// A fence is two statements, and others write in between.
		w.onStandby(l, store.beginFence)
		w.after(w.span(0, 5*time.Millisecond), func() { run(store) })
	})
}

// tell tells the core what a call came to that was run then.
func (l *life) tell(ran time.Duration, tell func(time.Duration)) {
	w := l.world
	l.input(func() {
		w.ran = ran
		tell(w.now)
		w.ran = 0
	})
}

// kill ends a life without warning. What it has sent may still arrive.
func (l *life) kill() {
	w := l.world
	w.logf("%s is killed", l.name)
	l.gone = true
	w.record.moment(check.Kill, l.name, outbox.ID{})
}

// pause lets a life stand still.
func (l *life) pause(d time.Duration) {
	w := l.world
	l.paused = w.now + d
	w.logf("%s stands still for %v", l.name, d)
	w.record.fault(check.Fault{Kind: check.Pause, Relay: l.name, From: at(w.now), To: at(l.paused), First: w.record.next()})
	w.queue.plan(l.paused, func() bool {
		if l.gone {
			return false
		}
		l.paused = 0
		inbox := l.inbox
		l.inbox = nil
		w.logf("%s goes on", l.name)
		for _, tell := range inbox {
			l.input(tell)
		}
		l.act()
		return true
	})
}

// stop asks a life to end.
func (l *life) stop() {
	w := l.world
	l.stopping = true
	w.logf("%s is asked to stop", l.name)
	l.input(func() {
		l.mustEnd = w.now + w.plan.config.Drain
		l.core.Stop(w.now)
	})
}
