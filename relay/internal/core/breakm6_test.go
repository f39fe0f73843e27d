package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// handled answers publishes as relay.Handlers does.
func handled(t *testing.T, handle consumer.Handler, types ...string) func(*core.Publish) (core.Outcome, bool) {
	var routes []consumer.Route
	for _, eventType := range types {
		routes = append(routes, consumer.OnType(eventType, handle))
	}
	c, err := consumer.New(consumer.Config{Name: "tester", Logger: slog.New(slog.DiscardHandler)}, routes...)
	if err != nil {
		t.Fatal(err)
	}
	return func(p *core.Publish) (core.Outcome, bool) {
		attributes := map[string]string{"event_id": p.Event.ID.String(), "event_type": p.Event.Type}
		switch v := c.Try(context.Background(), attributes, nil, p.Attempt); v.Outcome {
		case consumer.Failed:
			return core.Outcome{Class: core.Rejected, Detail: v.Reason}, true
		case consumer.Delayed:
			return core.Outcome{Class: core.RouteFault, Detail: v.Reason}, true
		case consumer.Poisoned:
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		default:
			return core.Outcome{}, true
		}
	}
}

// Bad events in front of good ones, one aggregate: the default is to go on.
func TestBreakHandlersBadOnesInARow(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 5} {
		p := newPlace(1)
		r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
		var bad []outbox.ID
		r.answer = handled(t, func(_ context.Context, e *consumer.Event) error {
			if slices.Contains(bad, e.ID) {
				return errors.New("bad")
			}
			return nil
		}, "a")
		for range n {
			bad = append(bad, p.emit(t, "0", "one", "a"))
		}
		good := p.emit(t, "0", "one", "a")
		r.pass(48 * time.Hour)
		t.Logf("%d bad: %v, good %d", n, states(p, t, bad), p.state(t, good))
		if p.state(t, good) != core.Published {
			t.Errorf("%d bad ones: after 48 hours the good one behind them is in state %d, they in %v", n, p.state(t, good), states(p, t, bad))
			for _, verb := range []check.Verb{check.Discard, check.Skip, check.Free} {
				results, _ := p.store.Operate(verb, memstore.Order{Action: p.id(), Actor: "ada", Reason: "x"}, bad[n-1], bad[2])
				t.Logf("%s: %v", verb, results)
			}
		}
	}
}

// The backend of type b is away for an hour; a, on another topic, works.
func TestBreakHandlersOutageOfOneType(t *testing.T) {
	t.Parallel()
	for _, withOther := range []bool{false, true} {
		p := newPlace(1)
		r := p.relay(t, registry{"a": {Topic: "x"}, "b": {Topic: "y"}}, func(c *core.Config) {
			c.MaxAttempts, c.MaxDelay = 10, 5*time.Minute
		})
		r.answer = handled(t, func(_ context.Context, e *consumer.Event) error {
			if e.Type == "b" && p.now < time.Hour {
				return errors.New("away")
			}
			return nil
		}, "a", "b")
		var bs []outbox.ID
		for i := range 100 {
			bs = append(bs, p.emit(t, "0", fmt.Sprint(i), "b"))
		}
		for p.now < time.Hour {
			if withOther {
				p.emit(t, "0", "other", "a")
			}
			r.pass(time.Second)
		}
		r.pass(time.Hour)
		t.Logf("others handled=%t: %d of 100 dead", withOther, p.in(t, core.Dead, bs))
	}
}

// More rows wait than a look brings.
func TestBreakManyWaitingOfAnUnknownType(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	short := func(c *core.Config) { c.SweepPeriod, c.UnknownTypeMaxAge = 10*time.Second, 10*time.Minute }
	newer := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "topic"}}, func(c *core.Config) { short(c); c.MaxAttempts = 100 })
	newer.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{Class: core.Rejected}, true }
	var unknown []outbox.ID
	for range 200 {
		unknown = append(unknown, p.emit(t, "0", "one", "b"))
	}
	newer.pass(5 * time.Second)
	newer.core.Stop(newer.now)
	newer.pass(30 * time.Second)
	old := p.relay(t, registry{"a": {Topic: "topic"}}, short)
	old.pass(2 * time.Minute)
	if n := p.in(t, core.Parked, unknown); n != len(unknown) {
		t.Errorf("%d of %d are parked", n, len(unknown))
	}
}
