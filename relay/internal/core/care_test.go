package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
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

// Owners that die one after the other, while a long queue behind a held event moves on in each life, do not make the
// next one careful: one event at a time, the queue would grow faster than it is sent, and never be drained in one life.
func TestAQueueThatMovesIsNotStuck(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic", Block: true}}
	for range 300 {
		p.emit(t, "0", "long", "a")
	}
	for life := range 8 {
		p.emit(t, "0", "short", "a") // others go on
		r := p.relay(t, routes, nil)
		answers := 0
		r.answer = func(*core.Publish) (core.Outcome, bool) {
			answers++
			if life == 0 && answers == 1 {
				return core.Outcome{Class: core.Rejected}, true
			}
			return core.Outcome{}, answers <= 20
		}
		r.pass(3 * time.Second)
		if len(r.alarms) > 0 || len(r.sent) < 20 {
			t.Fatalf("life %d: sent %d, alarms %q", life+1, len(r.sent), r.alarms)
		}
		p.now += time.Minute // it dies, and the lease expires
	}
	waiting := 0
	for _, event := range p.store.Events() {
		if event.State == core.Waiting {
			waiting++
		}
	}
	if waiting < 50 {
		t.Errorf("%d events wait: this test does not test", waiting)
	}
}

// A database that is away for longer than the lease makes everybody look dead. Relays that come back do not count
// one another's deaths: nobody has died.
func TestADatabaseThatWasAwayKillsNobody(t *testing.T) {
	t.Parallel()
	p := newPlace(4)
	away := false
	store := &memstore.Faulty{Store: p.store, Plan: func(memstore.Operation) memstore.Fault {
		if away {
			return memstore.NotDone
		}
		return memstore.None
	}}
	var relays []*rig
	for range 2 {
		r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
		r.via = store
		// the floors stand still
		r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{Class: core.RouteFault}, true }
		relays = append(relays, r)
	}
	for _, lane := range []string{"0", "1", "2", "3"} {
		p.emit(t, lane, "one", "a")
	}
	pass := func(d time.Duration) {
		for end := p.now + d; p.now < end; p.now += 100 * time.Millisecond {
			for _, r := range relays {
				r.settle()
			}
		}
	}
	pass(20 * time.Second)
	for range 5 {
		away = true
		pass(40 * time.Second)
		away = false
		slices.Reverse(relays) // the other one is back first
		pass(15 * time.Second)
	}
	for _, r := range relays {
		if len(r.alarms) > 0 || r.calls[core.OpAcquire] < 3 {
			t.Errorf("took lanes %d times, alarms %q", r.calls[core.OpAcquire], r.alarms)
		}
	}
}

// Owners that die one after the other while a topic is down, for other reasons, do not make the next one careful
// either, though that topic holds the floor of every lane.
func TestATopicThatIsDownIsNotWhatKills(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "down"}, "b": {Topic: "up"}}
	p.emit(t, "0", "one", "a")
	for life := range 8 {
		p.emit(t, "0", "two", "a")
		p.emit(t, "0", "three", "b")
		r := p.relay(t, routes, nil)
		r.answer = func(publish *core.Publish) (core.Outcome, bool) {
			if publish.Topic == "down" {
				return core.Outcome{Class: core.RouteFault}, true
			}
			return core.Outcome{}, true
		}
		r.pass(4 * time.Second)
		if len(r.alarms) > 0 {
			t.Fatalf("life %d: alarms %q", life+1, r.alarms)
		}
		p.now += time.Minute // it dies, and the lease expires
	}
}
