package hostile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
)

// A control is the same way with nothing hostile on it: good events through an outbox, a relay and a topic of their
// own, on the same servers and in the same process, one after the other. Between two of them it rests for as long as
// the last one took. How many come through while another event waits tells what the machine could do meanwhile.
type control struct {
	at *outlet

	mu    sync.Mutex
	trips []trip
}

// trip is the way of one control event.
type trip struct{ from, to time.Time }

// circle sends one event after the other until the context ends, and tells of each that came through.
func (c *control) circle(ctx context.Context, came func(on Broker)) error {
	for n := 0; ; n++ {
		sent, err := c.at.goods(ctx, hung, nil, fmt.Sprintf("control-%d", n))
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to stop
		}
		if err != nil {
			return err
		}
		found, arrived := c.at.arrivals.of(sent[0].id)
		if !arrived {
			return fmt.Errorf("hostile: %s: a control did not arrive within %s", c.at.topic, hung)
		}
		c.mu.Lock()
		c.trips = append(c.trips, trip{from: sent[0].committing, to: found.at})
		c.mu.Unlock()
		came(c.at.broker)
		if err := wait.For(ctx, found.at.Sub(sent[0].committing)); err != nil {
			return nil //nolint:nilerr // it was told to stop
		}
	}
}

// during counts the trips that began and ended between two moments.
func (c *control) during(from, to time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, t := range c.trips {
		if !t.from.Before(from) && !t.to.After(to) {
			n++
		}
	}
	return n
}

// took is how long each trip took.
func (c *control) took() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]time.Duration, len(c.trips))
	for i, t := range c.trips {
		all[i] = max(0, t.to.Sub(t.from))
	}
	return all
}
