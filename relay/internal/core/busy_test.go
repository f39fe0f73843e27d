package core_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A server in recovery is asked again after a pause, not as fast as it answers.
func TestFenceOfAStandby(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.pass(time.Second)
	p.store.SetStandby(true)
	r.now += 100 * time.Millisecond // the next fence is due
	before := r.calls[core.OpFence]
	for range 50 {
		r.now += time.Microsecond
		r.step()
	}
	if asked := r.calls[core.OpFence] - before; asked > 5 {
		t.Errorf("%d fences in 50 microseconds, %d alarms", asked, len(r.alarms))
	}
}
