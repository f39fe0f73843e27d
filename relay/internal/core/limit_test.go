package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

func (p *place) limit(t *testing.T, topic string, rate float64) {
	t.Helper()
	if outcome, err := p.store.Limit(memstore.Order{Action: p.id(), Actor: "ada", Reason: "gently"}, topic,
		rate); err != nil || outcome != memstore.Done {
		t.Fatalf("limit: %s, %v", outcome, err)
	}
}

// times writes down when publishes of a topic begin.
func (r *rig) times(topic string, into *[]time.Duration) {
	answer := r.answer
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Topic == topic {
			*into = append(*into, r.now)
		}
		if answer == nil {
			return core.Outcome{}, true
		}
		return answer(publish)
	}
}

// most is the most that began within a window of this length.
func most(times []time.Duration, window time.Duration) (found int) {
	for i := range times {
		n, _ := slices.BinarySearch(times, times[i]+window)
		found = max(found, n-i)
	}
	return found
}

// A limited topic gets what it may and not more, in order, and nobody is charged; another topic of the same aggregates
// is as fast as ever.
func TestALimitIsKept(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{1, 40, 500} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			p := newPlace(1)
			p.limit(t, "one", rate)
			seconds := 20
			events := int(rate) * seconds
			var want []outbox.ID
			for i := range events {
				id := p.emit(t, "0", fmt.Sprint(i%7), "a")
				if i%7 == 0 {
					want = append(want, id)
				}
				if i < 100 {
					p.emit(t, "0", fmt.Sprint(i%7), "b")
				}
			}
			r := p.relay(t, registry{"a": {Topic: "one", Block: true}, "b": {Topic: "two", Block: true}}, nil)
			var one, two []time.Duration
			r.times("one", &one)
			r.times("two", &two)
			r.pass(time.Duration(seconds+3) * time.Second)
			if len(two) != min(100, events) || two[len(two)-1] > 3*time.Second {
				t.Errorf("%d of the other topic were sent, the last at %v", len(two), two)
			}
			if got := most(one, time.Second); float64(got) > rate*1.1+1 {
				t.Errorf("%d were sent within a second", got)
			}
			if len(one) < events*9/10 {
				t.Errorf("%d of %d were sent within %d s", len(one), events, seconds+3)
			}
			r.pass(5 * time.Second)
			sent := slices.DeleteFunc(slices.Clone(r.sent), func(id outbox.ID) bool { return !slices.Contains(want, id) })
			if !slices.Equal(sent, want) {
				t.Error("the events of an aggregate were sent in another order")
			}
			p.untouched(t)
		})
	}
}

// Each relay takes the share of its lanes, so that all together keep to the limit, also when lanes move.
func TestALimitIsShared(t *testing.T) {
	t.Parallel()
	p := newPlace(4)
	p.limit(t, "one", 40)
	for i := range 4000 {
		p.emit(t, fmt.Sprint(i%4), fmt.Sprint(i%40), "a")
	}
	types := registry{"a": {Topic: "one", Block: true}}
	var times []time.Duration
	relays := []*rig{p.relay(t, types, nil)}
	relays[0].times("one", &times)
	together := func(d time.Duration) {
		for end := p.now + d; p.now < end; {
			for _, r := range relays {
				r.settle()
			}
			p.now += 5 * time.Millisecond
		}
	}
	together(10 * time.Second)
	alone := len(times)
	relays = append(relays, p.relay(t, types, nil))
	relays[1].times("one", &times)
	together(20 * time.Second)
	if got := most(times, time.Second); got > 40+4+2 {
		t.Errorf("%d were sent within a second", got)
	}
	if len(relays[1].sent) < 300 || alone < 300 || len(times)-alone < 600 {
		t.Errorf("alone %d were sent, then %d by both, of them %d by the second", alone, len(times)-alone,
			len(relays[1].sent))
	}
}

// What is sent to a topic counts, whether it is an event or a copy; also where no type goes.
func TestCopiesKeepToTheLimit(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"", "another"} {
		t.Run("to "+topic, func(t *testing.T) {
			t.Parallel()
			d := newRedelivery(t, nil)
			limited := topic
			if topic == "" {
				limited = "topic"
			}
			d.limit(t, limited, 2)
			d.pass(heard)
			var times []time.Duration
			d.times(limited, &times)
			d.ask(topic)
			d.pass(10 * time.Second)
			if got := most(times, 900*time.Millisecond); len(times) != 6 || got > 2 || d.order() == "" {
				t.Errorf("%d copies were sent, %d at most within 0.9 s", len(times), got)
			}
		})
	}
}

// What was redriven waits outside of memory as well, so that others find room; nothing is forgotten.
func TestHeldEventsOfALimitedTopicLeaveRoom(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	types := registry{"a": {Topic: "one", Block: true}, "b": {Topic: "two", Block: true}}
	r := p.relay(t, types, func(c *core.Config) { c.BaseDelay, c.MaxDelay = time.Minute, time.Minute })
	rejected := map[outbox.ID]bool{}
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Topic == "one" && !rejected[publish.Event.ID] {
			rejected[publish.Event.ID] = true
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		}
		return core.Outcome{}, true
	}
	var dead []outbox.ID
	for i := range 1000 {
		dead = append(dead, p.emit(t, "0", fmt.Sprint(i), "a"))
	}
	r.pass(20 * time.Second)
	p.limit(t, "one", 20)
	r.pass(heard)
	p.operate(t, check.Redrive, dead...)
	var one []time.Duration
	r.times("one", &one)
	for range 20 {
		p.emit(t, "0", "x", "b")
		r.pass(time.Second)
		if got := r.core.Counts().InFlight; got > 200 {
			t.Fatalf("%d events are in memory", got)
		}
	}
	if got := most(one, time.Second); got > 20+2+1 || len(one) < 300 {
		t.Errorf("%d were sent, %d at most within a second", len(one), got)
	}
	p.limit(t, "one", 0)
	r.pass(10 * time.Second)
	if p.store.Open() > 0 {
		t.Errorf("%d are open after the limit was lifted", p.store.Open())
	}
}

// A limited topic that fails is paused and probed as any other, and a limit that is changed or lifted is heard of.
func TestALimitedTopicIsProbed(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "one", Block: true}}, nil)
	down := true
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		if down {
			return core.Outcome{Class: core.RouteFault, Detail: "down"}, true
		}
		return core.Outcome{}, true
	}
	p.limit(t, "one", 10)
	for i := range 1000 {
		p.emit(t, "0", fmt.Sprint(i), "a")
	}
	r.pass(time.Minute)
	if len(r.sent) > 30 {
		t.Errorf("%d were sent to a topic that is down", len(r.sent))
	}
	down = false
	var times []time.Duration
	r.times("one", &times)
	r.pass(30 * time.Second)
	if got := most(times, time.Second); got > 12 || len(times) < 150 {
		t.Errorf("%d were sent when it was repaired, %d at most within a second", len(times), got)
	}
	p.untouched(t)
	p.limit(t, "one", 100)
	r.pass(heard)
	times = nil
	r.pass(time.Second)
	if len(times) < 80 || len(times) > 111 {
		t.Errorf("%d were sent within a second of the higher limit", len(times))
	}
	p.limit(t, "one", 0)
	r.pass(3 * time.Second)
	if p.store.Open() > 0 {
		t.Errorf("%d are open after the limit was lifted", p.store.Open())
	}
}

// What was not used is lost, but for a tenth of a second's worth.
func TestALimitIsNotSavedUp(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	p.limit(t, "one", 20)
	r := p.relay(t, registry{"a": {Topic: "one", Block: true}}, nil)
	r.pass(time.Hour)
	for i := range 200 {
		p.emit(t, "0", fmt.Sprint(i), "a")
	}
	var times []time.Duration
	r.times("one", &times)
	r.pass(5 * time.Second)
	if got := most(times, time.Second); got > 20+2 {
		t.Errorf("%d were sent within a second", got)
	}
}

// A lane that is given away has no share any more: its next owner may have it before this relay knows.
func TestALimitIsNotKeptForLanesThatGo(t *testing.T) {
	t.Parallel()
	p := newPlace(4)
	p.limit(t, "one", 40)
	types := registry{"a": {Topic: "one", Block: true}}
	first := p.relay(t, types, nil)
	first.pass(heard)
	for i := range 4000 {
		p.emit(t, fmt.Sprint(i%4), fmt.Sprint(i%40), "a")
	}
	first.keep[core.OpRelease] = true // the answer does not come
	second := p.relay(t, types, nil)
	second.settle()
	first.pass(heard)
	var times []time.Duration
	first.times("one", &times)
	first.pass(time.Second) // later it waits for that answer
	if len(times) > 20+2 || len(times) == 0 {
		t.Errorf("%d were sent for lanes that are given away", len(times)-20)
	}
}
