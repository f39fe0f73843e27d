package core_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// An event that kills whoever sends it is quarantined, and not before it must be the cause: three owners die
// with its lane until it is sent alone, and three more with it alone.
func TestAnEventThatKills(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic", Block: true}}
	event := p.emit(t, "0", "one", "a")
	const enough = 6
	for life := range enough {
		r := p.relay(t, routes, nil)
		r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
		r.pass(20 * time.Second)
		if state := p.state(t, event); len(r.sent) == 0 || state != core.Ready {
			t.Fatalf("life %d: sent %d times, and the event is in state %d", life+1, len(r.sent), state)
		}
		p.now += time.Minute // it dies, and the lease expires
	}
	r := p.relay(t, routes, nil)
	r.pass(time.Minute)
	if state := p.state(t, event); len(r.sent) > 0 || state != core.DeadBlocking {
		t.Errorf("after %d deaths: sent %d times, and the event is in state %d", enough, len(r.sent), state)
	}
	if letters := p.store.Letters(); len(letters) != 1 || letters[0].Reason != "crash_suspect" {
		t.Errorf("letters %+v", letters)
	}
}
