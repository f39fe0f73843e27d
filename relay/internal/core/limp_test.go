package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// L1: a route that has come back and loses an answer now and then carries everything else. It must not be paused for
// each of them, the longer the more often it was.
func TestARouteThatLimpsAfterAnOutage(t *testing.T) {
	t.Parallel()
	p := newPlace(4)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(config *core.Config) {
		config.Concurrency, config.MaxInFlight = 256, 4000
	})
	out := true
	answers := 0
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		answers++
		if out {
			return core.Outcome{Class: core.RouteFault, Detail: "away"}, true
		}
		if answers%50 == 0 {
			return core.Outcome{Class: core.Unknown, Detail: "no answer"}, true
		}
		return core.Outcome{}, true
	}
	var events []outbox.ID
	for n := range 4000 {
		events = append(events, p.emit(t, fmt.Sprint(n%4), fmt.Sprint(n), "a"))
	}
	r.pass(time.Minute) // the pauses are as long as they get
	out = false
	r.pass(30 * time.Second)
	open := 0
	for _, id := range events {
		if p.state(t, id) != core.Published {
			open++
		}
	}
	if open > 0 {
		t.Errorf("%d of %d events are still open 30 s after the outage", open, len(events))
	}
}

// A route that fails again while it comes back is left alone again soon.
func TestARouteThatRelapses(t *testing.T) {
	t.Parallel()
	p := newPlace(4)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(config *core.Config) {
		config.Concurrency, config.MaxInFlight = 256, 4000
	})
	out, answered, failed := true, 0, 0
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		if out {
			failed++
			return core.Outcome{Class: core.RouteFault, Detail: "away"}, true
		}
		answered++
		out = answered == 100
		return core.Outcome{}, true
	}
	for n := range 4000 {
		p.emit(t, fmt.Sprint(n%4), fmt.Sprint(n), "a")
	}
	r.pass(time.Minute)
	out, failed = false, 0
	r.pass(time.Minute)
	if answered != 100 {
		t.Fatalf("%d events were carried before the relapse", answered)
	}
	// What was in flight when it failed, and a probe every few seconds.
	if failed > 256+60 {
		t.Errorf("%d publishes failed in a minute of an outage", failed)
	}
}
