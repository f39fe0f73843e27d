package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// S-6: a topic that comes back is probed by one event, and gets more with every answer.
func TestATopicComesBackByAndBy(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	outcome := core.Outcome{Class: core.RouteFault, Detail: "down"}
	hang := false
	r.answer = func(*core.Publish) (core.Outcome, bool) { return outcome, !hang }
	for aggregate := range 40 {
		p.emit(t, "0", fmt.Sprint(aggregate), "a")
	}
	r.pass(10 * time.Second) // paused by now
	hang = true
	r.pass(15 * time.Second)
	if len(r.flying) != 1 {
		t.Fatalf("%d probes at once", len(r.flying))
	}
	for answers := 1; answers <= 4; answers++ {
		first := r.flying[0]
		r.flying = r.flying[1:]
		r.core.Published(r.now, first, core.Outcome{})
		r.pass(100 * time.Millisecond)
		if len(r.flying) != 1+answers {
			t.Errorf("%d events are in flight after %d answers", len(r.flying), answers)
		}
	}
}

// P13: a broker that asks to be left alone is left alone for that long.
func TestATopicIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		return core.Outcome{Class: core.RouteFault, Detail: "quota", RetryAfter: 2 * time.Minute}, true
	}
	p.emit(t, "0", "one", "a")
	r.pass(time.Minute)
	if len(r.sent) != 1 {
		t.Errorf("sent %d times in the first minute", len(r.sent))
	}
	r.pass(2 * time.Minute)
	if len(r.sent) < 2 {
		t.Errorf("sent %d times in three minutes", len(r.sent))
	}
}
