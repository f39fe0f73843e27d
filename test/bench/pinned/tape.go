package pinned

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// tape notes when every event of a phase was committed and acknowledged. Events are found by a number in
// their id, so that noting one costs a store and no lock.
type tape struct {
	phase     uint8
	began     time.Time
	committed []atomic.Int64 // nanoseconds since began, 0: not yet
	acked     []atomic.Int64
	late      []time.Duration // of each transaction, behind its intended time
	last      []atomic.Int64  // number of the last first delivery of each aggregate
	inverted  atomic.Int64
	repeated  atomic.Int64
	probes    atomic.Int64

	mu  sync.Mutex
	own []own // deliveries of the open writer's aggregate
}

// own is a delivery of the aggregate that the open writer writes to.
type own struct {
	id outbox.ID
	at time.Time
}

// The names of aggregates.
const (
	movingThing = "thing-" // and a number
	heldThing   = "held"   // the open writer's
	probeThing  = "probe"  // of events that only tell that the relay works
)

func newTape(phase uint8, events, transactions, aggregates int) *tape {
	t := &tape{
		phase: phase, began: time.Now(), committed: make([]atomic.Int64, events), acked: make([]atomic.Int64, events),
		late: make([]time.Duration, transactions), last: make([]atomic.Int64, aggregates),
	}
	for i := range t.last {
		t.last[i].Store(-1)
	}
	return t
}

// id makes an id that says which event of which phase it is.
func (t *tape) id(number int) outbox.ID {
	id := outbox.NewID()
	id[9] = t.phase
	binary.BigEndian.PutUint16(id[10:], uint16(number>>32))
	binary.BigEndian.PutUint32(id[12:], uint32(number))
	return id
}

// number reads it back. False: an event of another phase.
func (t *tape) number(id outbox.ID) (int, bool) {
	number := int(binary.BigEndian.Uint16(id[10:]))<<32 | int(binary.BigEndian.Uint32(id[12:]))
	return number, id[9] == t.phase && number < len(t.acked)
}

func (t *tape) since() int64 { return max(int64(time.Since(t.began)), 1) }

// publish is the broker: it acknowledges at once and looks at the clock.
func (t *tape) publish(_ context.Context, message *publish.Message) error {
	switch message.AggregateID {
	case heldThing:
		t.mu.Lock()
		t.own = append(t.own, own{id: message.ID, at: time.Now()})
		t.mu.Unlock()
		return nil
	case probeThing:
		t.probes.Add(1)
		return nil
	}
	number, known := t.number(message.ID)
	if !known {
		return nil
	}
	if !t.acked[number].CompareAndSwap(0, t.since()) {
		t.repeated.Add(1)
		return nil
	}
	aggregate, err := strconv.Atoi(strings.TrimPrefix(message.AggregateID, movingThing))
	if err != nil || aggregate >= len(t.last) {
		return nil //nolint:nilerr // not ours, so there is nothing to note
	}
	// The numbers of an aggregate's events grow in the order of its transactions.
	if before := t.last[aggregate].Swap(int64(number)); before > int64(number) {
		t.inverted.Add(1)
	}
	return nil
}

// undelivered counts committed events that the broker does not have.
func (t *tape) undelivered() int {
	missing := 0
	for i := range t.committed {
		if t.committed[i].Load() != 0 && t.acked[i].Load() == 0 {
			missing++
		}
	}
	return missing
}

// lastAck is when the last event was acknowledged.
func (t *tape) lastAck() time.Duration {
	last := int64(1)
	for i := range t.acked {
		last = max(last, t.acked[i].Load())
	}
	return time.Duration(last)
}

// ofWriter are the deliveries of the open writer's aggregate so far.
func (t *tape) ofWriter() []own {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.own)
}
