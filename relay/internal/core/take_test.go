package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// both is a relay that has published events of two topics in one lane, of an aggregate each.
type both struct {
	*rig
	slow, fast []outbox.ID
	sent       map[string]int    // copies by topic
	first      time.Duration     // of the copies to fast
	order      map[string]string // of the copies, by aggregate
}

func newBoth(t *testing.T, slow, fast int) *both {
	t.Helper()
	p := newPlace(1)
	b := &both{
		rig:  p.relay(t, registry{"a": {Topic: "slow"}, "b": {Topic: "fast"}}, nil),
		sent: map[string]int{}, order: map[string]string{},
	}
	for i := range slow {
		b.slow = append(b.slow, p.emit(t, "0", fmt.Sprint("s", i), "a"))
	}
	for i := range fast {
		b.fast = append(b.fast, p.emit(t, "0", fmt.Sprint("f", i), "b"))
	}
	b.pass(3 * time.Second)
	return b
}

// count counts the copies that are begun from now on, and has those to slow answered by this.
func (b *both) count(slow func(p *core.Publish) (core.Outcome, bool)) {
	seen := map[*core.Publish]bool{}
	b.answer = func(p *core.Publish) (core.Outcome, bool) {
		if p.Request != 0 && !seen[p] {
			seen[p] = true
			b.sent[p.Topic]++
			b.order[p.Event.Aggregate.ID] += fmt.Sprint(p.Event.Seq, " ")
			if p.Topic == "fast" && b.first == 0 {
				b.first = b.now
			}
		}
		if p.Topic == "slow" && slow != nil {
			return slow(p)
		}
		return core.Outcome{}, true
	}
}

func (b *both) ask(topic string, events ...outbox.ID) {
	b.t.Helper()
	if _, err := b.store.Redeliver(memstore.Order{Action: b.id(), Actor: "ada"}, topic, 0, events...); err != nil {
		b.t.Fatal(err)
	}
}

// ended counts the requests of a topic by how they stand.
func (b *both) ended(events []outbox.ID) map[core.RequestState]int {
	states := map[core.RequestState]int{}
	for _, r := range b.store.Requests() {
		if slices.Contains(events, r.Event) {
			states[r.State]++
		}
	}
	return states
}

// TestCopiesThatWaitHoldUpNoOtherTopic: more of them than a page has, before the others in their lane.
func TestCopiesThatWaitHoldUpNoOtherTopic(t *testing.T) {
	t.Parallel()
	always := func(outcome core.Outcome) func(*both) {
		return func(b *both) {
			b.count(func(*core.Publish) (core.Outcome, bool) { return outcome, true })
		}
	}
	limited := func(rate float64) func(*both) {
		return func(b *both) {
			b.limit(b.t, "slow", rate)
			b.pass(heard)
			b.count(nil)
		}
	}
	for name, is := range map[string]struct {
		slow   func(b *both)
		within time.Duration
	}{
		"limited":            {limited(0.05), 2 * time.Second},
		"limited a little":   {limited(2), 2 * time.Second},
		"limited by a trace": {limited(0.000001), 2 * time.Second},
		"down":               {always(core.Outcome{Class: core.RouteFault, Detail: "down"}), 15 * time.Second},
		"silent":             {always(core.Outcome{Class: core.Unknown, Detail: "no answer"}), 15 * time.Second},
		"rejects all":        {always(core.Outcome{Class: core.Rejected, Detail: "no"}), 5 * time.Second},
		"hangs": {func(b *both) {
			b.count(func(p *core.Publish) (core.Outcome, bool) {
				return core.Outcome{Class: core.Unknown, Detail: "no answer"}, b.now >= p.DecidedAt+5*time.Second
			})
		}, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBoth(t, 40, 100)
			is.slow(b)
			b.ask("", b.slow...)
			b.ask("", b.fast...)
			b.pass(is.within)
			if got := b.ended(b.fast); got[core.RequestDelivered] != len(b.fast) {
				t.Errorf("after %s, of the copies to the other topic %d are open", is.within, got[core.RequestOpen])
			}
			b.untouched(t)
		})
	}
}

// TestALimitedTopicGetsWhatItMay: copies that go beside others are as many as the limit lets through.
func TestALimitedTopicGetsWhatItMay(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.2, 2, 40} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			const copies = 120
			b := newBoth(t, copies, 200)
			b.limit(t, "slow", rate)
			b.pass(heard)
			b.count(nil)
			b.ask("", b.slow...)
			b.ask("", b.fast...)
			b.pass(60 * time.Second)
			if least := min(copies, int(rate*54)); b.sent["slow"] < least {
				t.Errorf("%d copies were sent in a minute, at least %d could be", b.sent["slow"], least)
			}
			if b.sent["fast"] != 200 {
				t.Errorf("%d of the others were sent", b.sent["fast"])
			}
		})
	}
}

// TestTheOrderHoldsWhereOthersWait: of an aggregate whose copies are on several pages, beside other topics.
func TestTheOrderHoldsWhereOthersWait(t *testing.T) {
	t.Parallel()
	b := newBoth(t, 3, 0)
	want := map[string]string{}
	for i := range 100 {
		aggregate := "xyz"[i%3 : i%3+1]
		id := b.emit(t, "0", aggregate, "ab"[i%2:i%2+1])
		b.slow = append(b.slow, id)
	}
	b.pass(3 * time.Second)
	b.limit(t, "slow", 2)
	b.pass(heard)
	b.count(nil)
	b.ask("slow", b.slow...)
	for _, r := range b.store.Requests() {
		event, _ := b.store.Event(r.Event)
		want[event.Aggregate.ID] += fmt.Sprint(r.Seq, " ")
	}
	b.pass(30 * time.Second)
	b.limit(t, "slow", 100)
	b.pass(time.Minute)
	for aggregate, order := range want {
		if b.order[aggregate] != order {
			t.Errorf("of %s were sent %s, and not %s", aggregate, b.order[aggregate], order)
		}
	}
}

// TestNothingIsTakenBesideWhatRelaysMayDieOf: else what waits for long would be blamed for the deaths of all others.
func TestNothingIsTakenBesideWhatRelaysMayDieOf(t *testing.T) {
	t.Parallel()
	b := newBoth(t, 1, 3)
	b.ask("", b.slow...)
	b.ask("", b.fast...)
	for kills := 0; ; kills++ {
		killed := false
		b.count(func(p *core.Publish) (core.Outcome, bool) { return core.Outcome{}, b.now >= p.DecidedAt+4*time.Second })
		answer := b.answer
		b.answer = func(p *core.Publish) (core.Outcome, bool) {
			killed = killed || p.Event.ID == b.fast[1]
			outcome, ok := answer(p)
			return outcome, ok && !killed
		}
		for range 300 {
			if b.pass(time.Second); killed {
				break
			}
		}
		if !killed || kills > 8 {
			break
		}
		b.place.now += time.Minute // its lease is over
		b.rig = b.place.relay(t, registry{"a": {Topic: "slow"}, "b": {Topic: "fast"}}, nil)
	}
	if got := b.ended(b.slow); got[core.RequestDelivered] != 1 {
		t.Errorf("the copy that waited is %v", got)
	}
	if got := b.ended(b.fast); got[core.RequestFailed] != 1 || got[core.RequestDelivered] != 2 {
		t.Errorf("those of the topic of which relays died are %v", got)
	}
}
