package core_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
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

// die has a relay take lanes, note an event of the first of them, if there is one, and die. Its lease expires.
func (p *place) die(t *testing.T, noted outbox.ID, lanes ...int16) {
	t.Helper()
	take := core.Acquire{Owner: p.rival(t), Tenure: outbox.NewID(), Lanes: lanes, Max: len(lanes)}
	if _, err := p.store.Acquire(t.Context(), take); err != nil {
		t.Fatal(err)
	}
	if noted != (outbox.ID{}) {
		tenure := core.Tenure{Lane: lanes[0], Token: take.Tenure}
		if _, err := p.store.Note(t.Context(), core.Note{Owner: take.Owner, Tenure: tenure, Event: noted}); err != nil {
			t.Fatal(err)
		}
	}
	p.now += time.Minute
	if _, err := p.store.EndExpired(t.Context(), core.EndExpired{Max: 8}); err != nil {
		t.Fatal(err)
	}
}

// rival registers a relay that has no core.
func (p *place) rival(t *testing.T) core.Owner {
	t.Helper()
	owner := core.Owner{Relay: p.id(), Token: p.id()}
	if _, err := p.store.Heartbeat(t.Context(), core.Heartbeat{
		Owner: owner, Register: &core.Registration{Name: "rival"}, Number: 1, Lease: 15 * time.Second,
	}); err != nil {
		t.Fatal(err)
	}
	return owner
}

// An owner has died with one event noted, and another one kills whoever sends it, before the first is reached. Each
// such death speaks for the first event, so that the note is free for the one that kills.
func TestAnEventThatKillsBesideOneThatWasNoted(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic", Block: true}}
	killer := p.emit(t, "0", "one", "a")
	innocent := p.emit(t, "0", "two", "a")
	p.die(t, innocent, 0)
	p.die(t, outbox.ID{}, 0)
	p.die(t, outbox.ID{}, 0)
	lives := 0
	for ; lives < 20 && p.state(t, killer) == core.Ready; lives++ {
		r := p.relay(t, routes, nil)
		r.answer = func(publish *core.Publish) (core.Outcome, bool) {
			return core.Outcome{}, publish.Event.ID != killer
		}
		r.pass(20 * time.Second)
		p.now += time.Minute
	}
	if state := p.state(t, killer); state != core.DeadBlocking || lives > 10 {
		t.Errorf("after %d deaths the event that kills is in state %d", lives, state)
	}
	r := p.relay(t, routes, nil)
	r.pass(time.Minute)
	if state := p.state(t, innocent); state != core.Published {
		t.Errorf("the other event is in state %d", state)
	}
}

// A topic hangs, so its first event is in flight nearly always, and relays are killed for other reasons. Those that had
// outlived a publish of it speak for it.
func TestATopicThatHangsWhileRelaysAreKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	event := p.emit(t, "0", "one", "a")
	alone := 0
	for range 20 {
		r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
		sent, timeouts := 0, 0
		r.answer = func(*core.Publish) (core.Outcome, bool) {
			if timeouts == sent {
				return core.Outcome{}, false
			}
			timeouts++
			return core.Outcome{Class: core.Unknown, Detail: "deadline exceeded"}, true
		}
		r.pass(5 * time.Second)
		sent = len(r.sent)
		r.pass(15 * time.Second)
		if len(r.sent) > sent && len(r.alarms) > 0 { // it is sent alone, and in flight
			alone++
		}
		p.now += time.Minute // it is killed with the next publish in flight, and the lease expires
	}
	if letters := p.store.Letters(); len(letters) > 0 || p.state(t, event) == core.DeadBlocking {
		t.Fatalf("the event of a topic that hangs is dead: %+v", letters)
	}
	if alone < 10 {
		t.Errorf("%d relays were killed with the event sent alone, want more", alone)
	}
}

// answerAfter has every publish end so, that long after it began.
func (r *rig) answerAfter(delay time.Duration, outcome core.Outcome) {
	began := map[*core.Publish]time.Duration{}
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if _, known := began[publish]; !known {
			began[publish] = r.now
		}
		return outcome, r.now-began[publish] >= delay
	}
}

// deadline is that of the relays of a topic that hangs.
const deadline = 10 * time.Second

func slow(c *core.Config) { c.Deadline = deadline }

// hang has publishes end without an answer, when their deadline is over.
func (r *rig) hang() {
	r.answerAfter(deadline, core.Outcome{Class: core.Unknown, Detail: "deadline exceeded"})
}

// The same where a relay has more lanes than it gets to in a life. It begins with the events that others have died
// with, so that it outlives them: else the same one would be in flight at each death.
func TestATopicThatHangsInManyLanesWhileRelaysAreKilled(t *testing.T) {
	t.Parallel()
	for world := range 4 {
		p := newPlace(4)
		for lane := range 4 {
			p.emit(t, strconv.Itoa(lane), "one", "a")
		}
		random := rand.New(rand.NewPCG(uint64(world), 0))
		alone := 0
		for range 40 {
			r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, slow)
			r.hang()
			p.pass(15*time.Second+time.Duration(random.Int64N(int64(30*time.Second))), notYet, r)
			if len(r.alarms) > 0 && len(r.flying) == 1 {
				alone++
			}
			p.now += time.Minute // it is killed, and the lease expires
		}
		if letters := p.store.Letters(); len(letters) > 0 {
			t.Errorf("world %d: events of a topic that hangs are dead: %+v", world, letters)
		}
		if alone < 10 {
			t.Errorf("world %d: %d relays were killed with an event sent alone, want more", world, alone)
		}
	}
}

// The same where the event that others have died with is held, and another one is ready, or the other way round: one of
// the two is read first, and is not sent first.
func TestATopicThatHangsWithSomethingHeldWhileRelaysAreKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	p.emit(t, "0", "held", "a")
	routes := registry{"a": {Topic: "topic", Block: true}}
	first := p.relay(t, routes, slow)
	first.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{Class: core.Rejected}, true }
	first.pass(500 * time.Millisecond)
	first.core.Stop(p.now)
	first.pass(2 * time.Second)
	p.emit(t, "0", "ready", "a")
	alone := 0
	for range 20 {
		r := p.relay(t, routes, slow)
		r.hang()
		p.pass(16*time.Second, notYet, r)
		if len(r.alarms) > 0 && len(r.flying) == 1 {
			alone++
		}
		p.now += time.Minute // it is killed, and the lease expires
	}
	if letters := p.store.Letters(); len(letters) > 0 {
		t.Errorf("events of a topic that hangs are dead: %+v", letters)
	}
	if alone < 10 {
		t.Errorf("%d relays were killed with an event sent alone, want more", alone)
	}
}

// Several events that kill, in one lane and in several. The deaths by one of them must not speak for another that is
// found already and waits for the time at which it may be declared dead.
func TestSeveralEventsThatKill(t *testing.T) {
	t.Parallel()
	for _, lanes := range []string{"00", "01", "0123", "0011"} {
		p := newPlace(4)
		var killers []outbox.ID
		for i := range lanes {
			killers = append(killers, p.emit(t, lanes[i:i+1], strconv.Itoa(i), "a"))
		}
		innocent := p.emit(t, "0", "innocent", "a")
		lives := 0
		for dead := false; !dead && lives < 60; lives++ {
			r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, slow)
			killed := false
			r.answer = func(publish *core.Publish) (core.Outcome, bool) {
				killed = killed || slices.Contains(killers, publish.Event.ID)
				return core.Outcome{}, !killed
			}
			dead = !p.pass(2*time.Minute, func() bool { return killed }, r)
			p.now += time.Minute // it dies, and the lease expires
		}
		for i, killer := range killers {
			if state := p.state(t, killer); state != core.DeadBlocking {
				t.Errorf("lanes %s: after %d deaths killer %d is in state %d", lanes, lives, i, state)
			}
		}
		if state := p.state(t, innocent); state != core.Published {
			t.Errorf("lanes %s: the other event is in state %d", lanes, state)
		}
		if most := 3 + 4*len(killers) + 2; lives > most {
			t.Errorf("lanes %s: %d relays died, want at most %d", lanes, lives, most)
		}
	}
}

// Nothing goes between a note and the event that it names: a death would count against that one.
func TestWhatIsNotedIsSent(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	for range 3 {
		p.die(t, outbox.ID{}, 0, 1)
	}
	p.emit(t, "0", "one", "a")
	p.emit(t, "1", "two", "a")
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
	if !p.pass(time.Minute, func() bool { return len(r.sent) > 0 }, r) {
		t.Fatal("nothing is sent: this test does not test")
	}
	var noted []outbox.ID
	for _, lane := range p.store.Lanes() {
		if lane.MarkedEvent != (outbox.ID{}) {
			noted = append(noted, lane.MarkedEvent)
		}
	}
	if !slices.Equal(noted, r.sent) {
		t.Errorf("noted are %v, and sent are %v", noted, r.sent)
	}
}

// Care ends when a lane was held for long, and not while the noted event is in flight: what is sent beside it may kill,
// and the noted one would be blamed.
func TestCareLastsUntilTheNotedEventIsAnswered(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	for range 3 {
		p.die(t, outbox.ID{}, 0)
	}
	for i := range 20 {
		p.emit(t, "0", strconv.Itoa(i), "a")
	}
	r := p.relay(t, registry{"a": {Topic: "topic"}}, slow)
	r.answerAfter(deadline-time.Second, core.Outcome{})
	most := 0
	beside := func() bool {
		most = max(most, len(r.flying))
		return len(r.flying) > 1 && p.store.Lanes()[0].MarkedEvent != outbox.ID{}
	}
	if p.pass(2*time.Minute, beside, r) {
		t.Errorf("%d events are in flight, and %v is noted", len(r.flying), p.store.Lanes()[0].MarkedEvent)
	}
	if most < 2 {
		t.Error("care has no end: this test does not test")
	}
}

// An event that kills whoever sends it is quarantined as well if its publisher does not get to sending it at first.
func TestAnEventThatKillsAndIsNotSentAtFirst(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	event := p.emit(t, "0", "one", "a")
	lives := 0
	for ; lives < 20 && p.state(t, event) != core.DeadBlocking; lives++ {
		r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
		r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{Class: core.NotSent}, len(r.sent) == 1 }
		r.pass(20 * time.Second)
		p.now += time.Minute // it dies of the second try, and the lease expires
	}
	if state := p.state(t, event); state != core.DeadBlocking || lives > 8 {
		t.Errorf("after %d deaths the event is in state %d", lives, state)
	}
}

// Relays are killed, hours apart, while an event waits that nobody knows the type of: they do not keep dying.
func TestDeathsThatAreHoursApart(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	p.emit(t, "0", "one", "nobody knows")
	for range 3 {
		r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
		r.pass(90 * time.Minute)
		p.now += 10 * time.Minute // it is killed, and the lease expires
		if n := p.store.Status()[0].CrashCount; n != 0 {
			t.Fatalf("%d deaths count after hours in which nothing happened", n)
		}
	}
}
