package memstore_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

const (
	lease  = 30 * time.Second
	plenty = 1 << 30 // bytes
)

// db is a store with a clock that a test moves. Every aggregate is in the lane of its first letter.
type db struct {
	*memstore.Store
	t   *testing.T
	now time.Duration
	ids uint64

	owner core.Owner // that settles where a test names none
	beats map[outbox.ID]int64
}

func newDB(t *testing.T) *db {
	t.Helper()
	d := &db{t: t, beats: map[outbox.ID]int64{}}
	d.Store = memstore.New(memstore.Config{
		Lane:  func(a core.Aggregate) int16 { return int16(a.ID[0]-'a') % 64 },
		Clock: func() time.Duration { return d.now },
		Epoch: time.Unix(1_700_000_000, 0),
	})
	d.owner = d.register()
	return d
}

// register starts a relay.
func (d *db) register() core.Owner {
	d.t.Helper()
	owner := core.Owner{Relay: d.id(), Token: d.id()}
	d.heartbeat(core.Heartbeat{Owner: owner, Register: &core.Registration{Name: "relay"}})
	return owner
}

// heartbeat is a beat with the next number of its relay.
func (d *db) heartbeat(beat core.Heartbeat) core.HeartbeatAnswer {
	d.t.Helper()
	d.beats[beat.Relay]++
	beat.Number, beat.Lease = d.beats[beat.Relay], lease
	answer, err := d.Heartbeat(d.t.Context(), beat)
	d.must(err)
	return answer
}

// crash lets the owner's lease end, and has it ended.
func (d *db) crash(owner core.Owner) {
	d.t.Helper()
	d.ExpireRelay(owner.Relay)
	_, err := d.EndExpired(d.t.Context(), core.EndExpired{Max: 8})
	d.must(err)
}

func (d *db) id() outbox.ID {
	d.ids++
	return number(d.ids)
}

func number(n uint64) (id outbox.ID) {
	id[6], id[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

func (d *db) event(aggregate, eventType string) core.Event {
	id := d.id()
	return core.Event{
		ID: id, Type: eventType, Aggregate: core.Aggregate{Namespace: "default", Type: "order", ID: aggregate},
		Payload: []byte(`{"eventId":"` + id.String() + `"}`),
	}
}

// emit writes events of type "placed" in a transaction of their own.
func (d *db) emit(aggregates ...string) (ids []outbox.ID) {
	d.t.Helper()
	tx := d.Begin()
	for _, aggregate := range aggregates {
		event := d.event(aggregate, "placed")
		d.write(tx, event)
		ids = append(ids, event.ID)
	}
	d.commit(tx)
	return ids
}

func (d *db) write(tx *memstore.Tx, events ...core.Event) []int64 {
	d.t.Helper()
	numbers, err := tx.Emit(events...)
	d.must(err)
	return numbers
}

func (d *db) commit(tx *memstore.Tx) {
	d.t.Helper()
	d.must(tx.Commit())
}

func (d *db) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// acquire takes lanes with a new token.
func (d *db) acquire(owner core.Owner, lanes ...int16) (outbox.ID, []core.Acquired) {
	d.t.Helper()
	tenure := d.id()
	taken, err := d.Acquire(d.t.Context(), core.Acquire{Owner: owner, Tenure: tenure, Lanes: lanes, Max: len(lanes)})
	d.must(err)
	return tenure, taken.Lanes
}

func (d *db) settle(settle *core.Settle) core.SettleAnswer {
	d.t.Helper()
	if settle.Owner == (core.Owner{}) {
		settle.Owner = d.owner
	}
	answer, err := d.Settle(d.t.Context(), settle)
	d.must(err)
	return answer
}

// read reads lane 0 and returns the numbers.
func (d *db) read(read core.Read) ([]int64, core.ReadAnswer) {
	d.t.Helper()
	answer, err := d.Read(d.t.Context(), read)
	d.must(err)
	var numbers []int64
	for _, e := range answer.Events {
		numbers = append(numbers, e.Seq)
	}
	return numbers, answer
}

func (d *db) fence() core.Fence {
	d.t.Helper()
	fence, err := d.Fence(d.t.Context())
	d.must(err)
	return fence
}

func (d *db) state(id outbox.ID) core.State {
	d.t.Helper()
	event, found := d.Event(id)
	if !found {
		d.t.Fatalf("event %s is not there", id)
	}
	return event.State
}

func wantNumbers(t *testing.T, got []int64, want ...int64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func wantState(d *db, id outbox.ID, want core.State) {
	d.t.Helper()
	if got := d.state(id); got != want {
		d.t.Errorf("event %s is in state %d, want %d", id, got, want)
	}
}

func lane0(w, c int64, limit int) []core.LaneRead {
	return []core.LaneRead{{Lane: 0, W: w, C: c, Limit: limit}}
}

// incarnation asks without the barrier of a whole fence, which would make everything durable.
func (d *db) incarnation() string {
	d.SetStandby(true)
	defer d.SetStandby(false)
	return d.fence().Incarnation
}

// operate does a verb as an action of its own.
func (d *db) operate(verb check.Verb, events ...outbox.ID) {
	d.t.Helper()
	results, err := d.Operate(verb, memstore.Order{Action: d.id(), Actor: "ann"}, events...)
	d.must(err)
	for _, result := range results {
		if result.Outcome != memstore.Done {
			d.t.Errorf("%s of %s: %s", verb, result.Event, result.Outcome)
		}
	}
}

// ready is an event as it was read when it was ready.
func (d *db) ready(id outbox.ID) core.Found {
	event, _ := d.Event(id)
	return core.Found{ID: id, Lane: event.Lane, Seq: event.Seq}
}

// rows are several.
func (d *db) rows(ids ...outbox.ID) (found []core.Found) {
	for _, id := range ids {
		found = append(found, d.ready(id))
	}
	return found
}
