package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// pages is a store that keeps what it was asked for.
type pages struct {
	*memstore.Store
	reads   []core.LaneRead
	largest int // page of held rows
	needs   []string
}

func (h *pages) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	h.reads = append(h.reads, read.Lanes...)
	return h.Store.Read(ctx, read)
}

func (h *pages) HeldKeys(ctx context.Context, held core.HeldKeys) (core.KeysAnswer, error) {
	answer, err := h.Store.HeldKeys(ctx, held)
	h.largest = max(h.largest, len(answer.Keys))
	return answer, err
}

func (h *pages) Unpark(ctx context.Context, unpark core.Unpark) (core.UnparkAnswer, error) {
	answer, err := h.Store.Unpark(ctx, unpark)
	h.largest = max(h.largest, answer.Looked)
	return answer, err
}

func (h *pages) OldParked(ctx context.Context, old core.OldParked) (core.ParkedAnswer, error) {
	answer, err := h.Store.OldParked(ctx, old)
	h.largest = max(h.largest, answer.Looked)
	return answer, err
}

func (h *pages) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	for _, lane := range beat.Lanes {
		h.needs = lane.Needs
	}
	return h.Store.Heartbeat(ctx, beat)
}

// order lists the sent events of an aggregate as they were sent, each once.
func (r *rig) order(ids []outbox.ID) (sent []int) {
	for _, id := range r.sent {
		if at := slices.Index(ids, id); at >= 0 && !slices.Contains(sent, at) {
			sent = append(sent, at)
		}
	}
	return sent
}

// TestWhatIsHeldIsListedInPages: of dead, parked, retrying and waiting events no look brings more than a page, nothing
// is published before all that is in front of it was listed, and what comes behind waits.
func TestWhatIsHeldIsListedInPages(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	const aggregates = 20
	var ids [aggregates][]outbox.ID
	name := func(i int) string { return fmt.Sprintf("%02d", i) }
	old := p.relay(t, registry{"a": {Topic: "topic", Block: true}, "b": {Topic: "topic", Block: true}}, nil)
	old.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Event.Type == "b" {
			return core.Outcome{Class: core.Terminal, Reason: "no"}, true
		}
		return core.Outcome{}, true
	}
	for i := range aggregates { // in front: dead, not known, or nothing
		first := []string{"b", "c", "a"}[i%3]
		ids[i] = append(ids[i], p.emit(t, "0", name(i), first), p.emit(t, "0", name(i), "a"))
	}
	old.pass(5 * time.Second)
	old.core.Stop(old.now)
	old.pass(30 * time.Second)

	next := p.relay(t, registry{"a": {Topic: "topic", Block: true}, "b": {Topic: "topic", Block: true}}, nil)
	store := &pages{Store: p.store}
	next.via = store
	next.delay = func(op core.Op) time.Duration { // long enough for what was listed to be looked at
		if op == core.OpHeldKeys {
			return 100 * time.Millisecond
		}
		return 0
	}
	for i := range aggregates {
		ids[i] = append(ids[i], p.emit(t, "0", name(i), "a"))
	}
	next.pass(5 * time.Second)
	if store.largest == 0 || store.largest > 3 {
		t.Errorf("a page of %d rows, want 3", store.largest)
	}
	for i := range aggregates {
		want := []int(nil)
		if i%3 == 2 {
			want = []int{2}
		}
		if got := next.order(ids[i]); !slices.Equal(got, want) {
			t.Errorf("aggregate %d: %v was sent, want %v", i, got, want)
		}
	}
	// Who knows the type releases what is parked, in order.
	next.core.Stop(next.now)
	next.pass(30 * time.Second)
	last := p.relay(t, registry{"a": {Topic: "topic"}, "b": {Topic: "topic"}, "c": {Topic: "topic"}}, nil)
	last.pass(20 * time.Second)
	for i := 1; i < aggregates; i += 3 {
		if got := last.order(ids[i]); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("aggregate %d: %v was sent, want all in order", i, got)
		}
	}
}

// TestALineThatIsBlockedGoesOnWhenItIsReleased: though nothing but a number was kept of it.
func TestALineThatIsBlockedGoesOnWhenItIsReleased(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic", Block: true}}
	old := p.relay(t, routes, nil)
	old.answer = func(*core.Publish) (core.Outcome, bool) {
		return core.Outcome{Class: core.Terminal, Reason: "no"}, true
	}
	ids := []outbox.ID{p.emit(t, "0", "one", "a")}
	old.pass(time.Second)
	old.core.Stop(old.now)
	old.pass(30 * time.Second)
	next := p.relay(t, routes, nil)
	next.pass(time.Second)
	ids = append(ids, p.emit(t, "0", "one", "a"))
	next.pass(5 * time.Second)
	if len(next.sent) > 0 || p.state(t, ids[1]) != core.Waiting {
		t.Fatalf("%d were sent, and what comes behind a dead event is in state %d", len(next.sent), p.state(t, ids[1]))
	}
	p.operate(t, check.Redrive, ids[0])
	next.pass(10 * time.Second)
	if got := next.order(ids); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("%v were sent, want both in order", got)
	}
}

// TestADetachedTopicReadsInWindowsBehindAnOpenWriter: the reader of a topic that was down goes through the backlog of
// another in windows, also while a transaction is open that has drawn a lower number.
func TestADetachedTopicReadsInWindowsBehindAnOpenWriter(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	open := p.store.Begin()
	late := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "one"}, Payload: []byte("{}"),
	}
	if _, err := open.Emit(late); err != nil {
		t.Fatal(err)
	}
	var ids []outbox.ID
	for range 20 {
		ids = append(ids, p.emit(t, "0", "one", "a"))
		for i := range 50 {
			p.emit(t, "0", fmt.Sprint(i), "b")
		}
	}
	r := p.relay(t, registry{"a": {Topic: "slow"}, "b": {Topic: "down"}}, func(c *core.Config) { c.Window = 10 })
	store := &pages{Store: p.store}
	r.via = store
	refusals := 0
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Topic == "slow" && refusals >= 8 {
			return core.Outcome{}, true
		}
		refusals++
		return core.Outcome{Class: core.RouteFault, Detail: "down"}, true
	}
	r.pass(2 * time.Minute)
	for i, id := range ids {
		if got := p.state(t, id); got != core.Published {
			t.Errorf("event %d of the topic that came back is in state %d", i, got)
		}
	}
	wide := 0
	for _, read := range store.reads {
		if read.Window == 0 || read.Window > 1000 {
			wide++
		}
	}
	// Before the fence has listed the writers twice nobody knows how far a window may move.
	if wide > 5 || len(store.reads) < 100 {
		t.Errorf("%d of %d reads had no window", wide, len(store.reads))
	}
	// What it wrote comes at last, and nothing is lost between windows.
	if err := open.Commit(); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Minute)
	if got := p.state(t, late.ID); got != core.Published {
		t.Errorf("the late event is in state %d", got)
	}
}

// hiccup is a store whose read fails once, as soon as the slow topic has its own reader. From then on those without a
// window do: they would walk over the whole backlog.
type hiccup struct {
	*memstore.Store
	reads int
	wide  int
}

func (h *hiccup) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	if slices.Equal(read.Exclude, []string{"b", "c"}) {
		h.reads++
		wide := slices.ContainsFunc(read.Lanes, func(l core.LaneRead) bool { return l.Window == 0 || l.Window > 500 })
		if h.reads == 40 || h.reads > 40 && wide {
			h.wide++
			return core.ReadAnswer{}, errors.New("canceling statement due to statement timeout")
		}
	}
	return h.Store.Read(ctx, read)
}

// TestADetachedTopicKeepsItsWindowsAfterAReadThatFailed: or one that timed out would be followed by a longer one, as
// long as some transaction is open.
func TestADetachedTopicKeepsItsWindowsAfterAReadThatFailed(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	open := p.store.Begin()
	if _, err := open.Emit(core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "one"}, Payload: []byte("{}"),
	}); err != nil {
		t.Fatal(err)
	}
	var ids []outbox.ID
	for range 20 {
		ids = append(ids, p.emit(t, "0", "one", "a"))
		for i := range 50 {
			p.emit(t, "0", fmt.Sprint(i), "b")
		}
	}
	routes := registry{"a": {Topic: "slow"}, "b": {Topic: "down"}, "c": {Topic: "other"}}
	r := p.relay(t, routes, func(c *core.Config) { c.Window = 10 })
	store := &hiccup{Store: p.store}
	r.via = store
	refusals := 0
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Topic == "slow" {
			if refusals++; refusals > 12 {
				return core.Outcome{}, true
			}
		}
		return core.Outcome{Class: core.RouteFault, Detail: "down"}, true
	}
	r.pass(5 * time.Minute)
	published := 0
	for _, id := range ids {
		if p.state(t, id) == core.Published {
			published++
		}
	}
	if published != len(ids) || store.wide != 1 {
		t.Errorf("%d of %d are published, %d reads of %d failed", published, len(ids), store.wide, store.reads)
	}
}

// TestNamesThatCannotBeHeld: an index has room for so many bytes. What has more is dead at once, and holds up nobody:
// parked, it would fail every settle that it is part of.
func TestNamesThatCannotBeHeld(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	long := strings.Repeat("n", 3000)
	unknown, known, good := p.emit(t, "0", "one", long), p.emit(t, "0", long, "a"), p.emit(t, "0", "one", "a")
	r.pass(10 * time.Second)
	for id, want := range map[outbox.ID]core.State{unknown: core.Dead, known: core.Dead, good: core.Published} {
		if got := p.state(t, id); got != want {
			t.Errorf("an event is in state %d, want %d", got, want)
		}
	}
}

// TestTypeNamesWithoutEnd: people are told of a hundred, and a beat carries about as many.
func TestTypeNamesWithoutEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) { c.SweepPeriod = time.Second })
	store := &pages{Store: p.store}
	r.via = store
	for i := range 1000 {
		p.emit(t, "0", fmt.Sprint(i), fmt.Sprintf("made_up_%d", i))
	}
	r.pass(time.Minute)
	if len(store.needs) != 128 {
		t.Errorf("a beat names %d types, want 128", len(store.needs))
	}
	if len(r.alarms) != 101 || !strings.Contains(r.alarms[100], "more than 100 event types are not known") {
		t.Errorf("%d alarms, the last: %s", len(r.alarms), r.alarms[len(r.alarms)-1])
	}
}

// TestARelayWithoutALaneSaysSo: once, and again when it has had one.
func TestARelayWithoutALaneSaysSo(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	first := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	first.pass(time.Second)
	second := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	for range 20 {
		first.settle()
		second.pass(time.Second)
	}
	alarms := slices.Concat(first.alarms, second.alarms)
	if len(alarms) != 1 || !strings.Contains(alarms[0], "2 relays share 1 lanes: this one has none") {
		t.Errorf("the alarms are %q", alarms)
	}
}
