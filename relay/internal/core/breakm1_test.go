package core_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// Rows of a type that wait, written down by a relay that knew it: then a relay has the lane that does not.
func TestBreakWaitingOfAnUnknownType(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	short := func(c *core.Config) { c.SweepPeriod, c.UnknownTypeMaxAge = 10*time.Second, 10*time.Minute }
	newer := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "topic"}}, func(c *core.Config) { short(c); c.MaxAttempts = 100 })
	newer.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{Class: core.Rejected}, true }
	var unknown []outbox.ID
	for range 5 {
		unknown = append(unknown, p.emit(t, "0", "one", "b"))
	}
	behind := p.emit(t, "0", "one", "a")
	newer.pass(5 * time.Second)
	newer.core.Stop(newer.now)
	newer.pass(30 * time.Second)
	t.Logf("states %v", states(p, t, unknown))
	old := p.relay(t, registry{"a": {Topic: "topic"}}, short)
	old.pass(30 * time.Second)
	t.Logf("states %v", states(p, t, unknown))
	if n := p.in(t, core.Parked, unknown); n != len(unknown) {
		t.Errorf("%d of %d are parked", n, len(unknown))
	}
	for i := range 8 {
		old.pass(11 * time.Minute)
		t.Logf("after %d minutes: %v, behind %d", 11*(i+1), states(p, t, unknown), p.state(t, behind))
	}
}

func states(p *place, t *testing.T, ids []outbox.ID) (s []core.State) {
	for _, id := range ids {
		s = append(s, p.state(t, id))
	}
	return s
}

// The second of two parked is released while the first is parked still.
func TestBreakSecondReleased(t *testing.T) {
	t.Parallel()
	for _, later := range []string{"b", "c"} {
		p := newPlace(1)
		r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) {
			c.SweepPeriod, c.UnknownTypeMaxAge = 10*time.Second, 10*time.Minute
		})
		first, second := p.emit(t, "0", "one", "b"), p.emit(t, "0", "one", later)
		behind := p.emit(t, "0", "one", "a")
		r.pass(2 * time.Second)
		p.operate(t, check.Free, second)
		r.pass(5 * time.Second)
		if s := p.state(t, second); s != core.Parked {
			t.Errorf("%s: after 5 s the second is in state %d", later, s)
		}
		r.pass(11 * time.Minute)
		t.Logf("after 11 min: %d %d %d", p.state(t, first), p.state(t, second), p.state(t, behind))
		r.pass(11 * time.Minute)
		t.Logf("after 22 min: %d %d %d", p.state(t, first), p.state(t, second), p.state(t, behind))
	}
}

// Random fleets with different registries, operators that release, redrive, discard and skip.
func TestBreakOrderFuzz(t *testing.T) {
	t.Parallel()
	full := registry{"a": {Topic: "x"}, "b": {Topic: "x"}, "c": {Topic: "y"}}
	stuck, wrong := 0, 0
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		p := newPlace(2)
		routes := registry{}
		for k, v := range full {
			v.Block = rnd.IntN(2) == 0
			if rnd.IntN(2) == 0 {
				v.Topic = "x"
			}
			routes[k] = v
		}
		age := []time.Duration{24 * time.Hour, -1, 20 * time.Second, 2 * time.Minute}[rnd.IntN(4)]
		redriven := map[outbox.ID]bool{}
		var order []outbox.ID
		var relays []*rig
		bad := map[outbox.ID]int{}
		check1 := func(pub *core.Publish) {
			for _, id := range order {
				e, _ := p.store.Event(id)
				if e.Seq >= pub.Event.Seq || e.Aggregate != pub.Event.Aggregate || routes[e.Type].Topic != pub.Topic {
					continue
				}
				switch e.State {
				case core.Published, core.Dead, core.Discarded:
				default:
					if !redriven[id] {
						wrong++
						t.Errorf("seed %d: %d (%s) is sent while %d (%s) is in state %d", seed, pub.Event.Seq, pub.Event.Type, e.Seq, e.Type, e.State)
					}
				}
			}
		}
		join := func() {
			known := registry{}
			for k, v := range routes {
				if rnd.IntN(3) > 0 {
					known[k] = v
				}
			}
			if len(known) == 0 {
				known["a"] = routes["a"]
			}
			r := p.relay(t, known, func(c *core.Config) {
				c.SweepPeriod, c.UnknownTypeMaxAge, c.MinStay = 3*time.Second, age, 3*time.Second
				c.Batch = 2 + rnd.IntN(20)
				c.MaxInFlight = 4 * c.Batch
			})
			seen := map[*core.Publish]bool{}
			r.answer = func(pub *core.Publish) (core.Outcome, bool) {
				if !seen[pub] {
					seen[pub] = true
					check1(pub)
				}
				switch n := rnd.IntN(20); {
				case n < 6:
					return core.Outcome{}, false
				case bad[pub.Event.ID] > 0 && n < 16:
					bad[pub.Event.ID]--
					return []core.Outcome{{Class: core.Rejected}, {Class: core.Terminal, Reason: "rejected"}, {Class: core.RouteFault}, {Class: core.Unknown},
						{Class: core.Terminal, Reason: "invalid_payload", Contract: true}}[rnd.IntN(5)], true
				}
				return core.Outcome{}, true
			}
			relays = append(relays, r)
		}
		join()
		for p.now < 3*time.Minute {
			p.now += 100 * time.Millisecond
			if rnd.IntN(10) == 0 && len(order) < 60 {
				id := p.emit(t, fmt.Sprint(rnd.IntN(2)), "one", []string{"a", "b", "c"}[rnd.IntN(3)])
				order = append(order, id)
				bad[id] = max(0, rnd.IntN(8)-4)
			}
			if rnd.IntN(80) == 0 && len(relays) < 3 {
				join()
			}
			if rnd.IntN(120) == 0 && len(relays) > 0 {
				i := rnd.IntN(len(relays))
				if rnd.IntN(2) == 0 { // killed
					relays = append(relays[:i:i], relays[i+1:]...)
				} else {
					relays[i].core.Stop(p.now)
				}
			}
			if len(order) > 0 && rnd.IntN(20) == 0 {
				id := order[rnd.IntN(len(order))]
				e, _ := p.store.Event(id)
				verb := check.Verb("")
				switch {
				case e.State == core.Parked:
					verb = check.Free
				case e.State == core.DeadBlocking:
					verb = []check.Verb{check.Redrive, check.Skip, check.Discard}[rnd.IntN(3)]
				case e.State == core.Dead && rnd.IntN(3) == 0:
					verb = check.Redrive
					redriven[id] = true
				}
				if verb != "" {
					if _, err := p.store.Operate(verb, memstore.Order{Action: p.id(), Actor: "ada", Reason: "x"}, id); err != nil {
						t.Fatal(err)
					}
				}
			}
			var alive []*rig
			for _, r := range relays {
				r.settle()
				if !r.stopped {
					alive = append(alive, r)
				}
			}
			relays = alive
		}
		// End: one relay that knows everything, or with a finite age one that knows a.
		for _, r := range relays {
			r.core.Stop(p.now)
		}
		for range 600 {
			p.now += 100 * time.Millisecond
			for _, r := range relays {
				if !r.stopped {
					r.settle()
				}
			}
		}
		clear(bad)
		known := routes
		if age < time.Hour && rnd.IntN(2) == 0 {
			known = registry{"a": routes["a"]}
		}
		r := p.relay(t, known, func(c *core.Config) { c.SweepPeriod, c.UnknownTypeMaxAge = 3*time.Second, age })
		r.answer = func(pub *core.Publish) (core.Outcome, bool) { check1(pub); return core.Outcome{}, true }
		for range 40 {
			r.pass(30 * time.Second)
			for _, id := range order {
				if p.state(t, id) == core.DeadBlocking {
					p.operate(t, check.Skip, id)
				}
			}
		}
		for _, id := range order {
			e, _ := p.store.Event(id)
			if e.State != core.Published && e.State != core.Dead && e.State != core.Discarded {
				stuck++
				t.Errorf("seed %d age %s known %v: event %d %s %s is in state %d in the end", seed, age, known.Types(), e.Seq, e.Type, e.Aggregate.Namespace, e.State)
			}
		}
		if stuck > 20 || wrong > 20 {
			t.Fatal("enough")
		}
	}
}
