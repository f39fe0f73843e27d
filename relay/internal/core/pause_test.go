package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// heard is longer than it takes a relay to hear of a pause or a resume, and to act on it.
const heard = 1500 * time.Millisecond

func (p *place) pause(t *testing.T, scope core.Scope, name string) {
	t.Helper()
	if outcome, err := p.store.Pause(memstore.Order{Action: p.id(), Actor: "ada", Reason: "it must be"}, scope,
		name); err != nil || outcome != memstore.Done {
		t.Fatalf("pause: %s, %v", outcome, err)
	}
}

func (p *place) resume(t *testing.T, scope core.Scope, name string) {
	t.Helper()
	if outcome, err := p.store.Resume(memstore.Order{Action: p.id(), Actor: "ada", Reason: "it may go"}, scope,
		name); err != nil || outcome != memstore.Done {
		t.Fatalf("resume: %s, %v", outcome, err)
	}
}

// untouched looks whether nobody was charged, killed or parked.
func (p *place) untouched(t *testing.T) {
	t.Helper()
	for _, row := range p.store.Events() {
		if row.Attempts > 0 || row.State != core.Ready && row.State != core.Waiting && row.State != core.Published {
			t.Errorf("event %s is in state %d with %d attempts", row.ID, row.State, row.Attempts)
		}
	}
}

// A relay that starts hears of the pauses before it takes a lane.
func TestAPauseIsKnownBeforeTheFirstPublish(t *testing.T) {
	t.Parallel()
	for scope, name := range map[core.Scope]string{core.ScopeAll: "", core.ScopeTopic: "topic", core.ScopeType: "a"} {
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			p := newPlace(1)
			p.pause(t, scope, name)
			var want []outbox.ID
			for i := range 20 {
				want = append(want, p.emit(t, "0", fmt.Sprint(i%3), "a"))
			}
			r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
			r.pass(time.Minute)
			if len(r.sent) > 0 {
				t.Errorf("%d events were sent in spite of the pause", len(r.sent))
			}
			p.untouched(t)
			p.resume(t, scope, name)
			r.pass(heard)
			if got := slices.SortedFunc(slices.Values(r.sent), compareIDs); !slices.Equal(got, want) {
				t.Errorf("%d of %d events were sent after the resume", len(got), len(want))
			}
			p.untouched(t)
		})
	}
}

func compareIDs(a, b outbox.ID) int { return slices.Compare(a[:], b[:]) }

// A paused topic is not even probed, however long; the others go on. It goes on where it was.
func TestAPausedTopicIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "one", Block: true}, "b": {Topic: "two", Block: true}}, nil)
	r.pass(heard)
	var want []outbox.ID
	for range 10 {
		want = append(want, p.emit(t, "0", "x", "a"))
	}
	r.pass(heard)
	p.pause(t, core.ScopeTopic, "one")
	r.pass(heard)
	for range 10 {
		want = append(want, p.emit(t, "0", "x", "a"))
		p.emit(t, "0", "x", "b")
	}
	r.pass(10 * time.Minute)
	if len(r.sent) != 20 {
		t.Errorf("%d events were sent, want 10 of each topic", len(r.sent))
	}
	if routes := p.store.Topics(); len(routes) != 1 || !routes[0].Paused ||
		!routes[0].ByOperator || routes[0].Error != "paused by ada: it must be" {
		t.Errorf("the routes are %+v", routes)
	}
	p.resume(t, core.ScopeTopic, "one")
	r.pass(heard)
	var got []outbox.ID
	for _, id := range r.sent {
		if event, _ := p.store.Event(id); event.Type == "a" {
			got = append(got, id)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the topic's events were sent as %v, want %v", got, want)
	}
	p.untouched(t)
	if routes := p.store.Topics(); len(routes) != 2 || routes[0].Paused {
		t.Errorf("the routes are %+v", routes)
	}
}

// What is behind an event of a paused type waits with it, and nothing else does, also with a new owner.
func TestNothingPassesAPausedType(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	types := registry{"a": {Topic: "one", Block: true}, "b": {Topic: "one", Block: true}, "c": {Topic: "two", Block: true}}
	first := p.relay(t, types, nil)
	first.pass(heard)
	p.pause(t, core.ScopeType, "a")
	first.pass(heard)
	free := []outbox.ID{p.emit(t, "0", "x", "b"), p.emit(t, "0", "x", "c")}
	want := []outbox.ID{p.emit(t, "0", "x", "a")}
	first.pass(heard)
	want = append(want, p.emit(t, "0", "x", "b"))
	free = append(free, p.emit(t, "0", "y", "b"), p.emit(t, "0", "x", "c"))
	want = append(want, p.emit(t, "0", "x", "a"))
	first.pass(heard)
	if got := slices.SortedFunc(slices.Values(first.sent), compareIDs); !slices.Equal(got, free) {
		t.Errorf("%v were sent, want %v", got, free)
	}
	p.now += time.Minute // it is dead, and its lease is over
	second := p.relay(t, types, nil)
	second.pass(heard)
	want = append(want, p.emit(t, "0", "x", "b"))
	second.pass(10 * time.Minute)
	if len(second.sent) > 0 {
		t.Errorf("the new owner sent %v", second.sent)
	}
	p.untouched(t)
	p.resume(t, core.ScopeType, "a")
	second.pass(heard)
	if !slices.Equal(second.sent, want) {
		t.Errorf("after the resume %v were sent, want %v", second.sent, want)
	}
	p.untouched(t)
}

// What is in flight when the pause comes finishes, but it is not tried again: not by its topic, not by its type.
func TestWhatIsInFlightFinishes(t *testing.T) {
	t.Parallel()
	for scope, name := range map[core.Scope]string{core.ScopeTopic: "topic", core.ScopeType: "a"} {
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			p := newPlace(1)
			r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
			answer := func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
			r.answer = func(publish *core.Publish) (core.Outcome, bool) { return answer(publish) }
			acked, failed, behind := p.emit(t, "0", "x", "a"), p.emit(t, "0", "y", "a"), p.emit(t, "0", "y", "a")
			r.pass(heard)
			if len(r.sent) != 2 {
				t.Fatalf("%d are in flight", len(r.sent))
			}
			p.pause(t, scope, name)
			r.pass(heard)
			answer = func(publish *core.Publish) (core.Outcome, bool) {
				if publish.Event.ID == acked {
					return core.Outcome{}, true
				}
				return core.Outcome{Class: core.Unknown, Detail: "nobody knows"}, true
			}
			r.pass(10 * time.Minute)
			if len(r.sent) != 2 || p.state(t, acked) != core.Published || p.state(t, failed) == core.Published {
				t.Errorf("%d were sent, the acknowledged one is in state %d, the other in %d", len(r.sent), p.state(t, acked),
					p.state(t, failed))
			}
			p.untouched(t)
			answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, true }
			p.resume(t, scope, name)
			r.pass(heard)
			if want := []outbox.ID{failed, behind}; !slices.Equal(r.sent[2:], want) {
				t.Errorf("after the resume %v were sent, want %v", r.sent[2:], want)
			}
		})
	}
}

// A retry that becomes due while its type is paused waits, and goes as soon as it may. Nobody looks at it meanwhile.
func TestARetryOfAPausedTypeWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	rejected := true
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		if rejected {
			return core.Outcome{Class: core.Rejected, Detail: "not now"}, true
		}
		return core.Outcome{}, true
	}
	r.pass(heard)
	event := p.emit(t, "0", "x", "a")
	r.pass(100 * time.Millisecond)
	rejected = false
	p.pause(t, core.ScopeType, "a")
	r.pass(heard)
	for range 50 {
		p.emit(t, "0", "x", "a")
		r.pass(heard)
	}
	if looks := r.calls[core.OpHeldRows]; len(r.sent) != 1 || looks > 5 {
		t.Errorf("it was sent %d times, and looked at %d times", len(r.sent), looks)
	}
	p.resume(t, core.ScopeType, "a")
	r.pass(heard)
	if p.state(t, event) != core.Published || p.store.Open() > 0 {
		t.Errorf("the event is in state %d, %d are open", p.state(t, event), p.store.Open())
	}
}

// A topic that failed before it was paused is probed when it is resumed.
func TestAFailingTopicIsProbedAfterAPause(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		return core.Outcome{Class: core.RouteFault, Detail: "down"}, true
	}
	r.pass(heard)
	for i := range 100 {
		p.emit(t, "0", fmt.Sprint(i), "a")
	}
	r.pass(time.Minute)
	p.pause(t, core.ScopeAll, "")
	r.pass(heard)
	before := len(r.sent)
	r.pass(10 * time.Minute)
	if len(r.sent) > before {
		t.Errorf("%d probes of a paused topic", len(r.sent)-before)
	}
	p.resume(t, core.ScopeAll, "")
	r.pass(heard)
	if probes := len(r.sent) - before; probes < 1 || probes > 2 {
		t.Errorf("%d probes after the resume, want one or two", probes)
	}
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, true }
	r.pass(time.Minute)
	if p.store.Open() > 0 {
		t.Errorf("%d are open", p.store.Open())
	}
	p.untouched(t)
}

// Two pauses of one topic: it goes on when both are over. And a type that nobody knows does not die while it is paused.
func TestPausesOverlap(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(c *core.Config) {
		c.SweepPeriod, c.UnknownTypeMaxAge = time.Second, time.Minute
	})
	r.pass(heard)
	p.pause(t, core.ScopeAll, "")
	p.pause(t, core.ScopeTopic, "topic")
	r.pass(heard)
	p.emit(t, "0", "x", "a")
	unknown := p.emit(t, "0", "y", "nobody's")
	p.resume(t, core.ScopeTopic, "topic")
	r.pass(10 * time.Minute)
	if len(r.sent) > 0 || p.state(t, unknown) != core.Parked {
		t.Errorf("%d were sent, the unknown one is in state %d", len(r.sent), p.state(t, unknown))
	}
	p.pause(t, core.ScopeType, "nobody's")
	p.resume(t, core.ScopeAll, "")
	r.pass(10 * time.Minute)
	if len(r.sent) != 1 || p.state(t, unknown) != core.Parked {
		t.Errorf("%d were sent, the unknown one is in state %d", len(r.sent), p.state(t, unknown))
	}
	p.resume(t, core.ScopeType, "nobody's")
	r.pass(time.Minute)
	if p.state(t, unknown) != core.Dead {
		t.Errorf("the unknown one is in state %d long after its age", p.state(t, unknown))
	}
}

// A relay that cannot ask goes by what it heard last.
func TestAPauseOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	r.pass(heard)
	p.pause(t, core.ScopeTopic, "topic")
	r.pass(heard)
	p.emit(t, "0", "x", "a")
	r.via = &memstore.Faulty{Store: p.store, Plan: func(operation memstore.Operation) memstore.Fault {
		if operation == "Heartbeat" {
			return memstore.NotDone
		}
		return memstore.None
	}}
	p.resume(t, core.ScopeTopic, "topic")
	r.pass(10 * time.Second)
	if len(r.sent) > 0 {
		t.Error("it went on without having heard of it")
	}
	r.via = p.store
	r.pass(time.Minute)
	if len(r.sent) != 1 {
		t.Errorf("%d were sent when it heard", len(r.sent))
	}
}
