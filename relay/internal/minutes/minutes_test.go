package minutes

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// clock is set by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func step(do core.Do, class core.Class, state core.State, lag time.Duration) *core.Step {
	return &core.Step{Do: do, Topic: "orders", Class: class, State: state, Result: core.Applied, Lag: lag}
}

func nothing(time.Time) (map[string]Waiting, bool) { return nil, true }

// Each minute has what happened in it, and none that is not over is written.
func TestMinutes(t *testing.T) {
	t.Parallel()
	clock := &clock{time.Date(2026, 1, 31, 12, 0, 59, 0, time.UTC)}
	c := NewCounter(clock.now)
	c.Arrived("orders")
	c.Observe(step(core.DidRefuse, core.Rejected, 0, 0))
	c.Observe(step(core.DidRefuse, core.RouteFault, 0, 0))
	c.Observe(step(core.DidRefuse, core.NotSent, 0, 0))
	c.Observe(&core.Step{Do: core.DidRefuse, Class: core.Terminal, Topic: "orders", Contract: true})
	stale := step(core.DidSettle, 0, core.Published, 0)
	stale.Result = core.Stale
	c.Observe(stale)
	if rows := c.finished(nothing); len(rows) != 0 {
		t.Errorf("the minute is not over, and has %v", rows)
	}
	clock.at = clock.at.Add(time.Second)
	c.Observe(step(core.DidSettle, 0, core.Published, 7*time.Millisecond))
	c.Observe(step(core.DidSettle, 0, core.Published, time.Hour))
	c.Observe(step(core.DidSettle, 0, core.DeadBlocking, 0))
	rows := c.finished(nothing)
	first := topicMinute{time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), "orders"}
	if got := rows[first]; len(rows) != 1 || got == nil || *got != (counts{
		arrived: 1, rejected: 1, topicFault: 1, surveyed: true,
	}) {
		t.Errorf("the first minute has %+v", got)
	}
	clock.at = clock.at.Add(-10 * time.Minute) // set back: the minute goes on
	c.Arrived("orders")
	c.end()
	c.written(rows)
	rows = c.finished(nothing)
	second := topicMinute{first.minute.Add(time.Minute), "orders"}
	want := counts{arrived: 1, published: 2, died: 1, surveyed: true}
	want.latencies[1], want.latencies[15] = 1, 1
	if got := rows[second]; len(rows) != 1 || got == nil || *got != want {
		t.Errorf("the second minute has %+v in %v", got, slices.Collect(maps.Keys(rows)))
	}
	var none *Counter
	none.Arrived("orders")
	none.Observe(step(core.DidSettle, 0, core.Published, 0))
}

// A clock that was a year ahead when the relay started does not stop the minutes for a year.
func TestAClockThatWasFarAhead(t *testing.T) {
	t.Parallel()
	right := time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC)
	clock := &clock{right.AddDate(1, 0, 0)}
	c := NewCounter(clock.now)
	c.Arrived("orders")
	clock.at = right
	c.Arrived("orders")
	clock.at = right.Add(time.Minute)
	rows := c.finished(nothing)
	if got := rows[topicMinute{right.Truncate(time.Minute), "orders"}]; len(rows) != 1 || got == nil || got.arrived != 2 {
		t.Errorf("got %v", rows)
	}
}

// What waits makes a row as well, once for each minute; where nothing happens and nothing waits there is none.
func TestWhatWaits(t *testing.T) {
	t.Parallel()
	clock := &clock{time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC)}
	asked := 0
	w := &Writer{Counter: NewCounter(clock.now), Waiting: func(since time.Time) (map[string]Waiting, bool) {
		asked++
		if want := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC); !since.Equal(want) {
			t.Errorf("asked what waits since %s, want %s", since, want)
		}
		return map[string]Waiting{"bills": {3, time.Minute}, "orders": {}, "": {7, time.Hour}}, true
	}}
	w.asked = w.Counter.began
	for range 3 {
		if rows := w.Counter.finished(w.waiting); len(rows) != 0 {
			t.Errorf("in its first minute it has %v", rows)
		}
	}
	clock.at = clock.at.Add(time.Minute)
	w.Counter.Arrived("orders") // the minute turns before anybody asks
	for range 3 {
		rows := w.Counter.finished(w.waiting)
		got := rows[topicMinute{time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), "bills"}]
		if len(rows) != 1 || got == nil || *got != (counts{pending: 3, oldest: time.Minute, surveyed: true}) {
			t.Errorf("got %+v of %d", got, len(rows))
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times what waits", asked)
	}
	args := arguments(outbox.ID{}, w.Counter.finished(w.waiting))
	if len(args) != 13 || args[10].([]string)[0] != "{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}" {
		t.Errorf("the arguments are %v", args)
	}
}

// While the survey fails, what waits is not known: that something happened makes a row, without it.
func TestWhatWaitsIsNotKnown(t *testing.T) {
	t.Parallel()
	clock := &clock{time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC)}
	known := false
	w := &Writer{Counter: NewCounter(clock.now), Waiting: func(time.Time) (map[string]Waiting, bool) {
		return map[string]Waiting{"orders": {3, time.Minute}}, known
	}}
	w.asked = w.Counter.began
	values := func() (pending []*int64, oldest []*float64) {
		args := arguments(outbox.ID{}, w.Counter.finished(w.waiting))
		return args[11].([]*int64), args[12].([]*float64)
	}
	w.Counter.Arrived("orders")
	clock.at = clock.at.Add(time.Minute)
	if pending, oldest := values(); len(pending) != 1 || pending[0] != nil || oldest[0] != nil {
		t.Errorf("not known, and written as %v and %v", pending, oldest)
	}
	w.Counter.written(w.Counter.finished(w.waiting))
	known = true
	clock.at = clock.at.Add(time.Minute)
	if pending, oldest := values(); len(pending) != 1 || pending[0] == nil || *pending[0] != 3 || *oldest[0] != 60 {
		t.Errorf("known, and written as %v and %v", pending, oldest)
	}
}
