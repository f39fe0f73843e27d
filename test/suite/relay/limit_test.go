package relay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// arrivals are when publishes to a topic reached the broker, in that order.
func (b *broker) arrivals(topic string) (times []time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.all {
		if d.Topic == topic {
			times = append(times, d.begun)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// TestAFleetKeepsToALimit: at no moment has the broker got more than the limit allows since the limit was there, from
// however many relays, also while their lanes move; another topic of the same aggregates waits for nothing. A slow
// machine makes it slower, and never faster: a publish reaches the broker after it was allowed.
func TestAFleetKeepsToALimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const rate, waiting, others = 200, 2000, 100
		op := operator.New(p.Pool, p.Schema)
		action := operator.Action{ID: outbox.NewID(), Actor: "ada", Reason: "consumers come back slowly"}
		if outcome, err := op.Limit(t.Context(), action, "orders", rate); err != nil || outcome != operator.Done {
			t.Fatalf("limit: %q, %v", outcome, err)
		}
		var last outbox.ID
		for i := range waiting / 20 {
			var events []outbox.Event
			for j := range 20 {
				events = append(events, placed.New(fmt.Sprint(j*7+i%7), note{N: i}))
			}
			ids := p.emit(t, append(events, billed.New(fmt.Sprint(i), note{N: i}))...)
			last = ids[len(events)-1]
		}
		began := time.Now()
		first := p.start(t, "first")
		eventually.True(t, "the first publishes", func() bool { return len(p.broker.arrivals("orders")) > rate/4 })
		second := p.start(t, "second")
		eventually.True(t, "lanes have moved", func() bool {
			return first.Stats().Lanes == 32 && second.Stats().Lanes == 32
		})
		eventually.True(t, "all of the other topic", func() bool { return len(p.broker.arrivals("bills")) == others })
		eventually.True(t, "a part of the limited one", func() bool { return len(p.broker.arrivals("orders")) >= 4*rate })
		found, err := op.Explain(t.Context(), last)
		if err != nil || len(found.Causes) == 0 || !slices.ContainsFunc(found.Causes, func(c operator.Cause) bool {
			return c.Code == operator.CauseTopicLimited && strings.Contains(c.Says, "limited to 200 per second")
		}) {
			t.Errorf("it says %+v, %v", found.Causes, err)
		}
		action.ID = outbox.NewID()
		lifted := time.Now()
		if outcome, err := op.Unlimit(t.Context(), action, "orders"); err != nil || outcome != operator.Done {
			t.Fatalf("unlimit: %q, %v", outcome, err)
		}
		p.awaitPublished(t, waiting+others)
		times := p.broker.arrivals("orders")
		late, _ := slices.BinarySearchFunc(times, lifted, time.Time.Compare)
		for n, at := range times[:late] {
			if most := rate*at.Sub(began).Seconds() + 2; float64(n+1) > most {
				t.Fatalf("after %s the broker had %d, and %.1f are allowed", at.Sub(began), n+1, most)
			}
		}
		if by := p.broker.begunBy(); by["first"] == 0 || by["second"] == 0 {
			t.Errorf("they have published %v", by)
		}
		p.wantDelivered(t)
	})
}

// begunBy is how many publishes each relay has begun.
func (b *broker) begunBy() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	by := map[string]int{}
	for _, d := range b.all {
		by[d.relay]++
	}
	return by
}
