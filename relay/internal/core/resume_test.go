package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// After an outage the backlog of one lane is read in about as many reads as without one: a lane with much to
// read gets more of each, also from a route's own reader.
func TestBacklogOfOneLaneAfterAnOutage(t *testing.T) {
	t.Parallel()
	reads := func(outage bool) int {
		p := newPlace(64)
		r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(c *core.Config) {
			c.Batch, c.MaxInFlight, c.MaxBytes, c.Concurrency = 500, 4000, 64<<20, 256
		})
		down := outage
		r.answer = func(*core.Publish) (core.Outcome, bool) {
			if down {
				return core.Outcome{Class: core.RouteFault, Detail: "down"}, true
			}
			return core.Outcome{}, true
		}
		r.pass(time.Second)
		for i := range 5000 {
			p.emit(t, "0", fmt.Sprint(i), "a")
		}
		if outage {
			r.pass(5 * time.Second)
		}
		before := r.calls[core.OpRead]
		down = false
		for range 300_000 {
			if p.store.Open() == 0 {
				break
			}
			r.pass(time.Millisecond)
		}
		return r.calls[core.OpRead] - before
	}
	usual, after := reads(false), reads(true)
	if after > 10*usual+50 {
		t.Errorf("%d reads after an outage, %d without one", after, usual)
	}
}
