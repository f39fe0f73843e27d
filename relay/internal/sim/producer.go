package sim

import (
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// lock is the lock on an aggregate's row: what serialises its writers.
type lock struct {
	held    bool
	waiting []func()
}

// take runs the function when the lock is its own.
func (k *lock) take(then func()) {
	if k.held {
		k.waiting = append(k.waiting, then)
		return
	}
	k.held = true
	then()
}

func (k *lock) release() {
	k.held = false
	if len(k.waiting) > 0 {
		then := k.waiting[0]
		k.waiting = k.waiting[1:]
		k.take(then)
	}
}

// transaction is one of a producer's.
type transaction struct {
	world     *World
	tx        *memstore.Tx
	aggregate int
	ordered   bool
	drawn     []int64 // numbers drawn and not used yet
	events    []check.Event
	left      int
	prepared  bool
	then      func()
}

// produce lets one producer write transactions, one after the other.
func (w *World) produce() {
	w.after(w.soon(w.plan.pace), func() {
		if !w.producing {
			return
		}
		aggregate := w.rand.IntN(w.plan.aggregates)
		t := &transaction{
			world: w, aggregate: aggregate, ordered: aggregate >= w.plan.unserialised, left: 1 + w.rand.IntN(3),
			then: w.produce,
		}
		w.writing++
		if t.ordered {
			w.locks[aggregate].take(func() { w.after(0, t.begin) })
			return
		}
		t.begin()
	})
}

func (t *transaction) begin() {
	w := t.world
	t.tx = w.store.Begin()
	if w.chance(0.2) { // as mappers do that ask for the number first
		if n, err := t.tx.Draw(); err == nil {
			t.drawn = append(t.drawn, n)
		}
		w.after(w.pause(), t.write)
		return
	}
	t.write()
}

// pause is how long a transaction takes its time: mostly short, sometimes very long.
func (w *World) pause() time.Duration {
	switch {
	case w.chance(0.1):
		return w.soon(w.plan.config.Lease / 2)
	case w.chance(0.3):
		return w.soon(100 * time.Millisecond)
	default:
		return w.soon(2 * time.Millisecond)
	}
}

// write emits one event, and goes on or ends.
func (t *transaction) write() {
	w := t.world
	if t.left == 0 {
		t.prepare()
		return
	}
	t.left--
	savepoint, events := t.tx.Savepoint(), len(t.events)
	if err := t.emit(); err != nil {
		t.lost()
		return
	}
	if w.chance(0.1) {
		if err := t.tx.RollbackTo(savepoint); err != nil {
			t.lost()
			return
		}
		t.events = t.events[:events]
	}
	w.after(w.pause(), t.write)
}

func (t *transaction) emit() error {
	w := t.world
	k := &w.plan.kinds[w.rand.IntN(len(w.plan.kinds))]
	event := w.newEvent(k, t.aggregate, 1+w.rand.IntN(600))
	var version uint64
	if t.ordered {
		w.versions[t.aggregate]++
		version = w.versions[t.aggregate]
	}
	if !k.unknown {
		w.trait(event.ID)
	}
	t.events = append(t.events, emitted(&event, k.Topic, version))
	if len(t.drawn) > 0 {
		number := t.drawn[0]
		t.drawn = t.drawn[1:]
		return t.tx.EmitAt(number, event)
	}
	_, err := t.tx.Emit(event)
	return err
}

// newKey names a transaction.
func (w *World) newKey() string {
	w.transactions++
	return fmt.Sprintf("tx-%d", w.transactions)
}

func aggregateOf(n int) core.Aggregate {
	return core.Aggregate{Namespace: "default", Type: "order", ID: fmt.Sprintf("a%d", n)}
}

// newEvent makes an event with some bytes that are its own.
func (w *World) newEvent(k *kind, aggregate, size int) core.Event {
	id := w.newID()
	payload := fmt.Appendf(make([]byte, 0, size+64), `{"eventId":"%x","data":"`, id)
	for range size {
		payload = append(payload, 'x')
	}
	event := core.Event{ID: id, Type: k.name, Aggregate: aggregateOf(aggregate), Payload: append(payload, `"}`...)}
	if w.emitted%3 == 0 {
		event.Headers = fmt.Appendf(nil, `{"n":"%d"}`, w.emitted)
	}
	return event
}

func emitted(e *core.Event, topic string, version uint64) check.Event {
	return check.Event{
		ID: e.ID, Type: e.Type, Topic: topic, Aggregate: e.Aggregate.ID, Version: version, Key: e.Aggregate.ID,
		Payload: check.SumOf(e.Payload), Headers: check.SumOf(e.Headers),
	}
}

// trait decides what is wrong with a new event.
func (w *World) trait(id outbox.ID) {
	var t trait
	switch {
	case w.healed:
		return
	case w.plan.poison > 0 && w.chance(0.2):
		w.plan.poison--
		t.poison = true
	case w.hit(BrokerTerminal):
		t.terminal = true
	case w.hit(ContractBroken):
		t.broken = true
	case w.chance(w.plan.rate[BrokerRejected] / 2):
		t.rejects = 1 + w.rand.IntN(6)
	case w.chance(w.plan.rate[Dropped] / 4):
		t.hangs = true
	default:
		return
	}
	w.broker.traits[id] = &t
}

// prepare lets some transactions wait for COMMIT PREPARED.
func (t *transaction) prepare() {
	w := t.world
	if len(t.events) == 0 || w.plan.rate[PreparedKept] == 0 || w.healed || !w.chance(0.2) {
		t.end()
		return
	}
	if t.tx.Prepare() != nil {
		t.lost()
		return
	}
	t.prepared = true
	w.after(w.soon(w.plan.config.Lease), t.end)
}

// end commits or rolls back.
func (t *transaction) end() {
	w := t.world
	key := w.newKey()
	switch {
	case w.chance(0.1):
		if !t.tx.Open() {
			t.lost()
			return
		}
		t.tx.Rollback()
		t.failed(key)
	case !t.prepared && w.chance(w.plan.async):
		if t.tx.CommitAsync() != nil {
			t.lost()
			return
		}
		w.committedAsync = w.now
		t.committed(key)
	default:
		if t.tx.Commit() != nil {
			t.lost()
			return
		}
		t.committed(key)
	}
	w.logf("producer %s of a%d ends with %d events", key, t.aggregate, len(t.events))
	if w.chance(0.5) {
		w.ring()
	}
	t.done()
}

// committed writes down what a transaction wrote. Whether that stays is known at the end.
func (t *transaction) committed(key string) {
	if len(t.events) > 0 {
		t.world.record.checker.Add(check.Record{Tx: &check.Tx{Key: key, Events: t.events}})
		t.world.record.doubtful = append(t.world.record.doubtful, doubtful{key, t.events[0].ID})
	}
}

func (t *transaction) failed(key string) {
	if len(t.events) > 0 {
		t.world.record.checker.Add(check.Record{Tx: &check.Tx{Key: key, Events: t.events, Outcome: check.Failed}})
	}
}

// lost ends a transaction that the database has forgotten.
func (t *transaction) lost() {
	t.world.logf("a transaction of a%d is lost", t.aggregate)
	t.failed(t.world.newKey())
	t.done()
}

func (t *transaction) done() {
	t.world.writing--
	if t.ordered {
		t.world.locks[t.aggregate].release()
	}
	t.then()
}

// ring rings the doorbell at every relay.
func (w *World) ring() {
	for _, l := range w.lives {
		if !l.gone {
			w.after(w.span(0, 2*time.Millisecond), func() { l.input(func() { l.core.Bell(w.now) }) })
		}
	}
}
