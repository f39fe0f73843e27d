// Package minutes counts what a relay does for each topic, minute by minute, for outbox_minutes.
package minutes

import (
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Bounds are the upper bounds of all latency buckets but the last, which has none.
var Bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
}

// counts is what happened for a topic in a minute.
type counts struct {
	arrived, published, died                int64
	rejected, terminal, topicFault, unknown int64
	latencies                               [len(Bounds) + 1]int64
	surveyed                                bool // what waited is known
	pending                                 int64
	oldest                                  time.Duration
}

// topicMinute is a minute of a topic.
type topicMinute struct {
	minute time.Time
	topic  string
}

// mostKept is how many minutes of topics are kept while they cannot be written.
const mostKept = 10_000

// farBack is how far a clock must be set back to have been wrong before.
const farBack = time.Hour

// A Counter counts. Its methods may be called from several goroutines; a nil one counts nothing.
type Counter struct {
	now   func() time.Time
	began time.Time // the last minute before it

	mutex   sync.Mutex
	minute  time.Time
	ends    time.Time
	current map[string]*counts
	over    map[topicMinute]*counts
}

// NewCounter makes a counter that goes by this clock.
func NewCounter(now func() time.Time) *Counter {
	c := &Counter{now: now, current: map[string]*counts{}, over: map[topicMinute]*counts{}}
	c.turn(now())
	c.began = c.minute.Add(-time.Minute)
	return c
}

// Arrived counts an event that was read.
func (c *Counter) Arrived(topic string) {
	c.count(topic, func(n *counts) { n.arrived++ })
}

// Observe counts what a step was about: an attempt that failed, an event that is published or dead.
func (c *Counter) Observe(step *core.Step) {
	switch {
	case step.Topic == "":
	case step.Do == core.DidRefuse:
		c.count(step.Topic, func(n *counts) { n.fail(step) })
	case step.Do == core.DidSettle && step.Result == core.Applied && step.State == core.Published:
		c.count(step.Topic, func(n *counts) {
			n.published++
			n.latencies[bucket(step.Lag)]++
		})
	case step.Do == core.DidSettle && step.Result == core.Applied &&
		(step.State == core.Dead || step.State == core.DeadBlocking):
		c.count(step.Topic, func(n *counts) { n.died++ })
	}
}

// fail counts an attempt by its class. What was never sent is none.
func (n *counts) fail(step *core.Step) {
	if step.Contract {
		return
	}
	switch step.Class {
	case core.Rejected:
		n.rejected++
	case core.Terminal:
		n.terminal++
	case core.RouteFault:
		n.topicFault++
	case core.Unknown:
		n.unknown++
	case core.Acknowledged, core.NotSent:
	}
}

// bucket is where a latency belongs.
func bucket(latency time.Duration) int {
	for i, bound := range Bounds {
		if latency <= bound {
			return i
		}
	}
	return len(Bounds)
}

func (c *Counter) count(topic string, change func(*counts)) {
	if c == nil {
		return
	}
	now := c.now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.turn(now)
	if c.current[topic] == nil {
		c.current[topic] = &counts{}
	}
	change(c.current[topic])
}

// turn begins a new minute when the last is over. A clock that was set back by little has the minute go on: none is
// counted twice. Where it was far ahead before, what was counted belongs to the minute that it is.
func (c *Counter) turn(now time.Time) {
	if now.Before(c.ends) {
		if c.ends.Sub(now) > farBack {
			c.minute = now.Truncate(time.Minute)
			c.ends = c.minute.Add(time.Minute)
		}
		return
	}
	for topic, n := range c.current {
		if len(c.over) < mostKept {
			c.over[topicMinute{c.minute, topic}] = n
		}
	}
	c.current = map[string]*counts{}
	c.minute = now.Truncate(time.Minute)
	c.ends = c.minute.Add(time.Minute)
}
