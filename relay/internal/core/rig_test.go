package core_test

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// registry is what the relays of a test know.
type registry map[string]core.Route

func (r registry) Route(eventType string) (core.Route, bool) {
	route, known := r[eventType]
	return route, known
}

func (r registry) Types() []string {
	var types []string
	for _, eventType := range []string{"a", "b", "c"} {
		if _, known := r[eventType]; known {
			types = append(types, eventType)
		}
	}
	return types
}

// place is the database of a test, and its time.
type place struct {
	now   time.Duration
	store *memstore.Store
	last  uint64
}

// newPlace makes a database in which the lane of an aggregate is its namespace: "0" is lane 0.
func newPlace(lanes int) *place {
	p := &place{}
	p.store = memstore.New(memstore.Config{
		Lanes: lanes, Clock: func() time.Duration { return p.now }, Epoch: time.Unix(1_700_000_000, 0),
		Lane: func(a core.Aggregate) int16 { return int16(a.Namespace[0] - '0') },
	})
	return p
}

func (p *place) id() (id outbox.ID) {
	p.last++
	binary.BigEndian.PutUint64(id[8:], p.last)
	return id
}

// emit commits one event and returns its id.
func (p *place) emit(t *testing.T, lane, aggregate, eventType string) outbox.ID {
	t.Helper()
	tx := p.store.Begin()
	event := core.Event{
		ID: p.id(), Type: eventType, Aggregate: core.Aggregate{Namespace: lane, Type: "t", ID: aggregate},
		Payload: []byte("{}"),
	}
	if _, err := tx.Emit(event); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return event.ID
}

func (p *place) state(t *testing.T, id outbox.ID) core.State {
	t.Helper()
	event, ok := p.store.Event(id)
	if !ok {
		t.Fatalf("event %s is gone", id)
	}
	return event.State
}

// rig is one relay. Calls are answered at once, unless their kind is kept back; publishes are answered by
// answer, or wait when that says so.
type rig struct {
	*place
	t       *testing.T
	core    *core.Core
	keep    map[core.Op]bool
	kept    []func(time.Duration) // answers that are on their way
	calls   map[core.Op]int
	flying  []*core.Publish
	sent    []outbox.ID // in order
	alarms  []string
	stopped bool
	wake    time.Duration
	answer  func(*core.Publish) (core.Outcome, bool)
	via     core.Store
	// delay is how much later the answer of the call comes that was just made; nil: none comes later.
	delay func(core.Op) time.Duration
	onWay []answerOnWay
}

// answerOnWay is an answer that comes later.
type answerOnWay struct {
	at   time.Duration
	tell func(time.Duration)
}

func (p *place) relay(t *testing.T, routes registry, change func(*core.Config)) *rig {
	t.Helper()
	r := &rig{place: p, t: t, keep: map[core.Op]bool{}, calls: map[core.Op]int{}, via: p.store}
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, true }
	p.last++ // no two draw the same
	seed := p.last + 1
	config := core.Config{
		Routes: routes, Batch: 100, Window: 50_000, HeldPage: 3, MaxInFlight: 400, MaxBytes: 1 << 20, Concurrency: 16,
		Depth:   func(string) int { return 1 },
		MinPoll: 4 * time.Millisecond, Poll: 100 * time.Millisecond, FencePeriod: 50 * time.Millisecond,
		HeldPeriod:  time.Second,
		SweepPeriod: time.Hour, Lease: 30 * time.Second, Deadline: 5 * time.Second, Margin: time.Second,
		Drain:   20 * time.Second,
		MinStay: 10 * time.Second, MaxAttempts: 3, BaseDelay: time.Second, MaxDelay: 10 * time.Second,
		UnknownTypeMaxAge: 24 * time.Hour,
		Random:            func() uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return seed >> 1 },
		Observe: func(s core.Step) {
			if s.Do == core.DidAlarm {
				r.alarms = append(r.alarms, s.Detail)
			}
		},
	}
	if change != nil {
		change(&config)
	}
	r.core = core.New(config)
	return r
}

// step acts once and does what the core wants done. It tells whether the core was told something.
func (r *rig) step() (told bool) {
	told = r.tellArrived()
	actions := r.core.Act(r.now)
	r.wake, r.stopped = actions.Wake, actions.Stopped
	if r.stopped {
		return false
	}
	for _, call := range actions.Calls {
		r.calls[call.Op]++
		tell := call.Run(context.Background(), r.via)
		if r.keep[call.Op] {
			r.kept = append(r.kept, tell)
			continue
		}
		if r.delay != nil {
			if late := r.delay(call.Op); late > 0 {
				r.onWay = append(r.onWay, answerOnWay{r.now + late, tell})
				continue
			}
		}
		tell(r.now)
		told = true
	}
	for _, publish := range actions.Publish {
		r.sent = append(r.sent, publish.Event.ID)
	}
	flying := slices.Concat(r.flying, actions.Publish)
	r.flying = nil
	for _, publish := range flying {
		if outcome, ok := r.answer(publish); ok {
			r.core.Published(r.now, publish, outcome)
			told = true
		} else {
			r.flying = append(r.flying, publish)
		}
	}
	for _, answer := range r.onWay {
		r.wake = min(r.wake, answer.at)
	}
	return told
}

// tellArrived tells the core the answers whose time has come.
func (r *rig) tellArrived() (told bool) {
	onWay := r.onWay
	r.onWay = nil
	for _, answer := range onWay {
		if answer.at > r.now {
			r.onWay = append(r.onWay, answer)
			continue
		}
		answer.tell(r.now)
		told = true
	}
	return told
}

// settle acts until nothing happens any more at this time.
func (r *rig) settle() {
	for range 10_000 {
		if told := r.step(); r.stopped || !told && r.wake > r.now {
			return
		}
	}
	r.t.Fatal("the core does not come to rest")
}

// pass lets time pass.
func (r *rig) pass(d time.Duration) {
	end := r.now + d
	r.settle()
	for !r.stopped && r.wake < end {
		r.now = max(r.now, r.wake)
		r.settle()
	}
	r.now = end
	if !r.stopped {
		r.settle()
	}
}

// tellKept hands in the answers that were kept back.
func (r *rig) tellKept() {
	kept := r.kept
	r.kept = nil
	for _, tell := range kept {
		tell(r.now)
	}
}
