package core_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// An event arrives once, however often it is read while its topic is paused or fails.
func TestAnEventArrivesOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	arrived := map[string]int{}
	r := p.relay(t, registry{"a": {Topic: "one"}, "b": {Topic: "two"}}, func(config *core.Config) {
		config.Arrived = func(topic string) { arrived[topic]++ }
	})
	r.pass(heard)
	down := true
	r.answer = func(sent *core.Publish) (core.Outcome, bool) {
		if down && sent.Event.Type == "a" {
			return core.Outcome{Class: core.RouteFault, Detail: "it is down"}, true
		}
		return core.Outcome{}, true
	}
	for n := range 30 {
		p.emit(t, "0", string(rune('A'+n)), "a")
		p.emit(t, "0", string(rune('A'+n)), "b")
		r.pass(time.Second)
	}
	r.pass(10 * time.Minute)
	down = false
	r.pass(10 * time.Minute)
	p.pause(t, core.ScopeTopic, "one")
	for n := range 10 {
		p.emit(t, "0", string(rune('A'+n)), "a")
	}
	r.pass(10 * time.Minute)
	p.resume(t, core.ScopeTopic, "one")
	r.pass(10 * time.Minute)
	if arrived["one"] != 40 || arrived["two"] != 30 {
		t.Errorf("of 40 and 30 events arrived %v", arrived)
	}
}
