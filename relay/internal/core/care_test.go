package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// An event that was answered is noted until its settle is written. If another one were sent meanwhile and killed the
// relay, three times, the first would be quarantined with it.
func TestNothingIsSentWhileANoteStands(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	routes := registry{"a": {Topic: "topic", Block: true}}
	events := []outbox.ID{p.emit(t, "0", "one", "a"), p.emit(t, "1", "two", "a")}
	for range 3 { // relays that die with both in flight
		dying := p.relay(t, routes, nil)
		dying.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
		dying.pass(time.Second)
		p.now += time.Minute
	}
	r := p.relay(t, routes, nil)
	r.keep[core.OpSettle] = true
	r.pass(2 * time.Second)
	if len(r.alarms) == 0 || r.calls[core.OpNote] == 0 {
		t.Fatalf("the relay is not careful: %q, %d notes", r.alarms, r.calls[core.OpNote])
	}
	if len(r.sent) != 1 {
		t.Errorf("%d events were sent, and the first is not settled yet", len(r.sent))
	}
	r.keep[core.OpSettle] = false
	r.tellKept()
	r.pass(time.Second)
	slices.SortFunc(r.sent, func(a, b outbox.ID) int { return slices.Compare(a[:], b[:]) })
	if !slices.Equal(r.sent, events) {
		t.Errorf("sent %v, want each once: %v", r.sent, events)
	}
}
