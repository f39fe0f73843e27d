package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// One event that is delayed for long, and a good one of another aggregate now and then.
func TestBreakOneDelayedEvent(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"none", "delayed", "failing"} {
		p := newPlace(1)
		r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) { c.MaxAttempts, c.MaxDelay = 1000, 5*time.Minute })
		var bad outbox.ID
		handledAt := map[outbox.ID]time.Duration{}
		r.answer = handled(t, func(_ context.Context, e *consumer.Event) error {
			switch {
			case e.ID != bad:
				handledAt[e.ID] = p.now
				return nil
			case kind == "delayed":
				return &consumer.DelayError{After: time.Minute, Err: errors.New("not yet")}
			default:
				return errors.New("bad")
			}
		}, "a")
		if kind != "none" {
			bad = p.emit(t, "0", "bad", "a")
		}
		r.pass(10 * time.Minute)
		var worst, sum time.Duration
		for i := range 60 {
			at := p.now
			id := p.emit(t, "0", fmt.Sprint(i), "a")
			r.pass(time.Minute)
			late := handledAt[id] - at
			if handledAt[id] == 0 {
				late = time.Hour
			}
			worst, sum = max(worst, late), sum+late
		}
		t.Logf("%s: worst %s, mean %s", kind, worst, sum/60)
	}
}
