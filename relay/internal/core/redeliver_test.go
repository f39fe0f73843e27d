package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// redelivery is a relay that has published six events of two aggregates, and what it sends from then on.
type redelivery struct {
	*rig
	events []outbox.ID // a1 b1 a2 b2 a3 b3
	copies []*core.Publish
}

func newRedelivery(t *testing.T, change func(*core.Config)) *redelivery {
	t.Helper()
	p := newPlace(1)
	d := &redelivery{rig: p.relay(t, registry{"a": {Topic: "topic"}}, change)}
	for i := range 6 {
		d.events = append(d.events, p.emit(t, "0", string("ab"[i%2]), "a"))
	}
	d.pass(3 * time.Second)
	if len(d.sent) != 6 {
		t.Fatalf("%d events were published", len(d.sent))
	}
	answer := d.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		if p.Request != 0 && !slices.Contains(d.copies, p) {
			d.copies = append(d.copies, p)
		}
		return answer(p)
	}
	return d
}

// ask asks for all of it, and returns the action.
func (d *redelivery) ask(topic string) outbox.ID {
	d.t.Helper()
	action := d.id()
	results, err := d.store.Redeliver(memstore.Order{Action: action, Actor: "ada"}, topic, 0, d.events...)
	if err != nil || slices.ContainsFunc(results, func(r memstore.Result) bool { return r.Outcome != memstore.Done }) {
		d.t.Fatalf("%v, %v", results, err)
	}
	return action
}

func (d *redelivery) cancel(action outbox.ID) (canceled, inHands int, err error) {
	return d.store.CancelRequests(memstore.Order{Action: d.id(), Actor: "ada"}, action)
}

// cancelAll cancels an action as outboxctl does, until nothing of it is open.
func (d *redelivery) cancelAll(action outbox.ID, within time.Duration) {
	d.t.Helper()
	for range within / (200 * time.Millisecond) {
		_, inHands, err := d.cancel(action)
		if err != nil {
			d.t.Fatal(err)
		}
		if inHands == 0 {
			return
		}
		d.pass(200 * time.Millisecond)
	}
	d.t.Fatalf("after %s something is open still: %v", within, d.states())
}

// order is the copies that were begun, as the places of their events.
func (d *redelivery) order() string {
	var list []string
	for _, p := range d.copies {
		list = append(list, fmt.Sprintf("%s%d", p.Event.Aggregate.ID, slices.Index(d.events, p.Event.ID)/2+1))
	}
	return strings.Join(list, " ")
}

func (d *redelivery) states() (list []core.RequestState) {
	for _, r := range d.store.Requests() {
		list = append(list, r.State)
	}
	return list
}

func all(state core.RequestState) []core.RequestState {
	return slices.Repeat([]core.RequestState{state}, 6)
}

// TestCopiesAreSentInOrder: one at a time of each aggregate, marked, and to the topic that was named; the events stay
// as they are.
func TestCopiesAreSentInOrder(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"", "another"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			d := newRedelivery(t, nil)
			d.ask(topic)
			d.pass(3 * time.Second)
			if got := d.order(); got != "a1 b1 a2 b2 a3 b3" {
				t.Errorf("sent %s", got)
			}
			want := map[string]string{"": "topic", "another": "another"}[topic]
			for _, p := range d.copies {
				if p.Topic != want || !p.Redelivered || p.Request == 0 {
					t.Errorf("sent %+v", p)
				}
			}
			if got := d.states(); !slices.Equal(got, all(core.RequestDelivered)) {
				t.Errorf("the requests are %v", got)
			}
			for _, id := range d.events {
				if state := d.state(t, id); state != core.Published {
					t.Errorf("an event is in state %d", state)
				}
			}
		})
	}
}

// TestNobodyAsksWhereNothingIsRequested: a relay does not look for requests while there are none.
func TestNobodyAsksWhereNothingIsRequested(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	d.pass(time.Minute)
	if n := d.calls[core.OpTakeRequests]; n > 0 {
		t.Errorf("asked %d times", n)
	}
}

// TestACopyThatFailsHoldsTheOthersUntilThatIsWrittenDown: else a crash could bring it back behind them.
func TestACopyThatFailsHoldsTheOthersUntilThatIsWrittenDown(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, ok := answer(p)
		if p.Request != 0 && p.Event.ID == d.events[0] {
			outcome = core.Outcome{Class: core.Terminal, Reason: "too_large", Detail: "too large"}
		}
		return outcome, ok
	}
	d.ask("")
	d.keep[core.OpSettleRequests] = true
	d.pass(3 * time.Second)
	if got := d.order(); strings.Contains(got, "a2") {
		t.Errorf("sent %s, and that a1 failed is not written down", got)
	}
	d.keep[core.OpSettleRequests] = false
	for _, tell := range d.kept {
		tell(d.now)
	}
	d.pass(3 * time.Second)
	if got := d.order(); !strings.Contains(got, "a2") || !strings.Contains(got, "a3") {
		t.Errorf("sent %s", got)
	}
	if got := d.states()[0]; got != core.RequestFailed {
		t.Errorf("the request is %d", got)
	}
}

// TestEventsWaitForNoMoreThanACopyInFlight: what is live of the same aggregate and topic goes behind the copy that is
// in flight, and copies wait while it is.
func TestEventsWaitForNoMoreThanACopyInFlight(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	held := true
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, _ := answer(p)
		return outcome, !held
	}
	d.ask("")
	d.pass(3 * time.Second)
	if got := d.order(); got != "a1 b1" {
		t.Fatalf("in flight are %s", got)
	}
	before := len(d.sent)
	live := d.emit(t, "0", "a", "a")
	d.pass(time.Second)
	if len(d.sent) != before {
		t.Error("an event was sent beside a copy of its aggregate")
	}
	held = false
	d.pass(3 * time.Second)
	if at := slices.Index(d.sent, live); at < 0 || at > before+1 {
		t.Errorf("the event was sent as number %d behind the copy", at-before)
	}
	if got := d.states(); !slices.Equal(got, all(core.RequestDelivered)) {
		t.Errorf("the requests are %v", got)
	}
}

// TestATopicThatIsDownFailsNoRequest: they are given back, and delivered when it is up.
func TestATopicThatIsDownFailsNoRequest(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]core.Outcome{
		"down":        {Class: core.RouteFault, Detail: "down"},
		"silent":      {Class: core.Unknown, Detail: "no answer"},
		"rejects all": {Class: core.Rejected, Detail: "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newRedelivery(t, nil)
			c := d.emit(t, "0", "c", "a") // a third aggregate: only then a topic rejects all
			d.pass(time.Second)
			d.events = append(d.events, c)
			down := true
			answer := d.rig.answer
			d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
				if _, ok := answer(p); down && ok {
					return outcome, true
				}
				return core.Outcome{}, true
			}
			d.ask("another")
			d.pass(10 * time.Minute)
			if got := d.states(); slices.Contains(got, core.RequestFailed) || slices.Contains(got, core.RequestDelivered) {
				t.Errorf("while it is down the requests are %v", got)
			}
			down = false
			d.pass(3 * time.Minute)
			for i, got := range d.states() {
				if got != core.RequestDelivered {
					t.Errorf("request %d is %d", i, got)
				}
			}
			d.untouched(t)
		})
	}
}

// TestATopicOfCopiesIsForgotten: somebody may have mistyped its name.
func TestATopicOfCopiesIsForgotten(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		if _, ok := answer(p); ok && p.Topic == "mistyped" {
			return core.Outcome{Class: core.RouteFault, Detail: "no such topic"}, true
		}
		return core.Outcome{}, true
	}
	fails := func() bool {
		return slices.ContainsFunc(d.store.Topics(), func(r memstore.TopicRow) bool {
			return r.Topic == "mistyped" && r.Paused
		})
	}
	action := d.ask("mistyped")
	d.pass(time.Minute)
	if !fails() {
		t.Fatalf("the topics are %+v", d.store.Topics())
	}
	d.cancelAll(action, time.Minute)
	d.pass(time.Minute)
	if fails() {
		t.Errorf("the topics are %+v", d.store.Topics())
	}
	d.untouched(t)
}

// TestACancelDoesNotWaitForALimit: the first copy is sent, and the others are given back, because their turn is minutes
// away.
func TestACancelDoesNotWaitForALimit(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	d.limit(t, "topic", 0.02)
	d.pass(heard + time.Minute) // copies are taken into memory when one of them may be sent
	action := d.ask("")
	d.pass(2 * time.Second)
	d.cancelAll(action, 12*time.Second)
	sent := len(d.copies)
	d.pass(10 * time.Minute)
	if len(d.copies) != sent || sent != 1 {
		t.Errorf("%d copies were sent, and %d after the cancel", sent, len(d.copies)-sent)
	}
	d.untouched(t)
}

// TestACancelDoesNotWaitForABacklog: events have all places, and copies wait for one.
func TestACancelDoesNotWaitForABacklog(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, func(config *core.Config) { config.Concurrency = 2 })
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, _ := answer(p)
		return outcome, p.DecidedAt+200*time.Millisecond <= d.now
	}
	for i := range 800 {
		d.emit(t, "0", fmt.Sprint("c", i), "a")
	}
	d.pass(time.Second)
	action := d.ask("")
	d.cancelAll(action, 15*time.Second)
	if len(d.sent) > 600 {
		t.Errorf("%d of 806 events were sent: there was no backlog", len(d.sent))
	}
}

// TestCopiesOfAFailedOneAreGivenBack: it stays alone in hands, with the count of its tries.
func TestCopiesOfAFailedOneAreGivenBack(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, ok := answer(p)
		if ok && p.Request != 0 {
			return core.Outcome{Class: core.Rejected, Detail: "no"}, true
		}
		return outcome, ok
	}
	action := d.ask("")
	d.pass(time.Second)
	d.limit(t, "topic", 0.01)
	d.pass(15 * time.Second)
	if _, inHands, err := d.cancel(action); err != nil || inHands > 2 { // the first of each aggregate
		t.Errorf("%d copies are in hands, %v", inHands, err)
	}
}

// TestLanesTakeTurnsAtALowLimit: what is given back and taken again does not always begin with the same lane.
func TestLanesTakeTurnsAtALowLimit(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	var events []outbox.ID
	for i := range 40 {
		events = append(events, p.emit(t, string("01"[i%2]), fmt.Sprint(i), "a"))
	}
	r.pass(3 * time.Second)
	r.limit(t, "topic", 0.08)
	r.pass(heard)
	counts := map[int16]int{}
	answer := r.answer
	r.answer = func(p *core.Publish) (core.Outcome, bool) {
		counts[p.Event.Lane]++
		return answer(p)
	}
	if _, err := r.store.Redeliver(memstore.Order{Action: r.id(), Actor: "ada"}, "", 0, events...); err != nil {
		t.Fatal(err)
	}
	r.pass(3 * time.Minute)
	if counts[0] < 3 || counts[1] < 3 {
		t.Errorf("copies by lane: %v", counts)
	}
}

// TestARejectedCopyFailsAfterSomeTries: while others are taken.
func TestARejectedCopyFailsAfterSomeTries(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, ok := answer(p)
		if p.Request != 0 && p.Event.ID == d.events[2] {
			outcome = core.Outcome{Class: core.Rejected, Detail: "not this one"}
		}
		return outcome, ok
	}
	d.ask("")
	d.pass(2 * time.Minute)
	want := all(core.RequestDelivered)
	want[2] = core.RequestFailed
	if got := d.states(); !slices.Equal(got, want) {
		t.Errorf("the requests are %v", got)
	}
	if request := d.store.Requests()[2]; request.Attempts != 5 || request.Error != "not this one" {
		t.Errorf("the request is %+v", request)
	}
	d.untouched(t)
}

// TestACanceledRequestIsNotSent: none is when the cancel says that nobody has it in hands.
func TestACanceledRequestIsNotSent(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	held := true
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, _ := answer(p)
		return outcome, !held
	}
	action := d.ask("")
	if canceled, inHands, err := d.cancel(action); canceled != 6 || inHands != 0 || err != nil {
		t.Fatalf("%d canceled, %d in hands, %v", canceled, inHands, err)
	}
	d.pass(3 * time.Second)
	if len(d.copies) > 0 {
		t.Errorf("sent %s", d.order())
	}
	action = d.ask("")
	d.pass(3 * time.Second)
	if canceled, inHands, err := d.cancel(action); canceled != 0 || inHands != 6 || err != nil {
		t.Errorf("%d canceled, %d in hands, %v", canceled, inHands, err)
	}
}

// TestPausesHoldCopiesBack: of all, of a topic, and of a type.
func TestPausesHoldCopiesBack(t *testing.T) {
	t.Parallel()
	for scope, name := range map[core.Scope]string{core.ScopeAll: "", core.ScopeTopic: "another", core.ScopeType: "a"} {
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			d := newRedelivery(t, nil)
			d.pause(t, scope, name)
			d.pass(heard)
			d.ask("another")
			d.pass(time.Minute)
			if len(d.copies) > 0 {
				t.Errorf("sent %s", d.order())
			}
			d.resume(t, scope, name)
			d.pass(10 * time.Second)
			if got := d.order(); got != "a1 b1 a2 b2 a3 b3" {
				t.Errorf("sent %s", got)
			}
		})
	}
}

// TestWhatKillsRelaysAsACopyFails: a copy that no relay survives is taken a few times, at last alone, and fails.
func TestWhatKillsRelaysAsACopyFails(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	d.ask("")
	kills := 0
	rig := d.rig
	for range 20 {
		killed := false
		rig.answer = func(p *core.Publish) (core.Outcome, bool) {
			if p.Request != 0 && p.Event.ID == d.events[0] {
				killed = true
				return core.Outcome{}, false
			}
			return core.Outcome{}, true
		}
		for range 60 {
			if rig.pass(time.Second); killed {
				break
			}
		}
		if !killed {
			break
		}
		kills++
		d.place.now += time.Minute // its lease is over
		rig = d.place.relay(t, registry{"a": {Topic: "topic"}}, nil)
	}
	rig.pass(3 * time.Minute)
	want := all(core.RequestDelivered)
	want[0] = core.RequestFailed
	if got := d.states(); !slices.Equal(got, want) || kills > 8 {
		t.Errorf("after %d kills the requests are %v", kills, got)
	}
}

// TestRequestsAreGivenBackAtAStop: nothing is left in anybody's hands.
func TestRequestsAreGivenBackAtAStop(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	hold := true
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, _ := answer(p)
		return outcome, !hold
	}
	d.ask("")
	d.pass(3 * time.Second)
	d.core.Stop(d.now)
	hold = false
	d.pass(5 * time.Second)
	if !d.stopped {
		t.Error("it does not stop")
	}
	for _, r := range d.store.Requests() {
		if r.State == core.RequestOpen && (r.Taken > 0 || r.TakenBy != outbox.ID{}) {
			t.Errorf("%+v is in somebody's hands", r)
		}
	}
}
