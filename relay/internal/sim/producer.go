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
	sim       *Simulation
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
func (sim *Simulation) produce() {
	sim.after(sim.soon(sim.plan.pace), func() {
		if !sim.producing {
			return
		}
		aggregate := sim.rand.IntN(sim.plan.aggregates)
		t := &transaction{
			sim: sim, aggregate: aggregate, ordered: aggregate >= sim.plan.unserialised, left: 1 + sim.rand.IntN(3),
			then: sim.produce,
		}
		sim.writing++
		if t.ordered {
			sim.locks[aggregate].take(func() { sim.after(0, t.begin) })
			return
		}
		t.begin()
	})
}

func (t *transaction) begin() {
	sim := t.sim
	t.tx = sim.store.Begin()
	if sim.chance(0.2) { // as mappers do that ask for the number first
		if n, err := t.tx.Draw(); err == nil {
			t.drawn = append(t.drawn, n)
		}
		sim.after(sim.pause(), t.write)
		return
	}
	t.write()
}

// pause is how long a transaction takes its time: mostly short, sometimes very long.
func (sim *Simulation) pause() time.Duration {
	switch {
	case sim.chance(0.1):
		return sim.soon(sim.plan.config.Lease / 2)
	case sim.chance(0.3):
		return sim.soon(100 * time.Millisecond)
	default:
		return sim.soon(2 * time.Millisecond)
	}
}

// write emits one event, and goes on or ends.
func (t *transaction) write() {
	sim := t.sim
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
	if sim.chance(0.1) {
		if err := t.tx.RollbackTo(savepoint); err != nil {
			t.lost()
			return
		}
		t.events = t.events[:events]
	}
	sim.after(sim.pause(), t.write)
}

func (t *transaction) emit() error {
	sim := t.sim
	k := &sim.plan.kinds[sim.rand.IntN(len(sim.plan.kinds))]
	event := sim.newEvent(k, t.aggregate, 1+sim.rand.IntN(600))
	var version uint64
	if t.ordered {
		sim.versions[t.aggregate]++
		version = sim.versions[t.aggregate]
	}
	if !k.unknown {
		sim.trait(event.ID)
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
func (sim *Simulation) newKey() string {
	sim.transactions++
	return fmt.Sprintf("tx-%d", sim.transactions)
}

func aggregateOf(n int) core.Aggregate {
	return core.Aggregate{Namespace: "default", Type: "order", ID: fmt.Sprintf("a%d", n)}
}

// newEvent makes an event with some bytes that are its own.
func (sim *Simulation) newEvent(k *kind, aggregate, size int) core.Event {
	id := sim.newID()
	payload := fmt.Appendf(make([]byte, 0, size+64), `{"eventId":"%x","data":"`, id)
	for range size {
		payload = append(payload, 'x')
	}
	event := core.Event{ID: id, Type: k.name, Aggregate: aggregateOf(aggregate), Payload: append(payload, `"}`...)}
	if sim.emitted%3 == 0 {
		event.Headers = fmt.Appendf(nil, `{"n":"%d"}`, sim.emitted)
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
func (sim *Simulation) trait(id outbox.ID) {
	var t trait
	switch {
	case sim.healed:
		return
	case sim.plan.poison > 0 && sim.chance(0.2):
		sim.plan.poison--
		t.poison = true
	case sim.hit(BrokerTerminal):
		t.terminal = true
	case sim.hit(ContractBroken):
		t.broken = true
	case sim.chance(sim.plan.rate[BrokerRejected] / 2):
		t.rejects = 1 + sim.rand.IntN(6)
	case sim.chance(sim.plan.rate[Dropped] / 4):
		t.hangs = true
	default:
		return
	}
	sim.broker.traits[id] = &t
}

// prepare lets some transactions wait for COMMIT PREPARED.
func (t *transaction) prepare() {
	sim := t.sim
	if len(t.events) == 0 || sim.plan.rate[PreparedKept] == 0 || sim.healed || !sim.chance(0.2) {
		t.end()
		return
	}
	if t.tx.Prepare() != nil {
		t.lost()
		return
	}
	t.prepared = true
	sim.after(sim.soon(sim.plan.config.Lease), t.end)
}

// end commits or rolls back.
func (t *transaction) end() {
	sim := t.sim
	key := sim.newKey()
	switch {
	case sim.chance(0.1):
		if !t.tx.Open() {
			t.lost()
			return
		}
		t.tx.Rollback()
		t.failed(key)
	case !t.prepared && sim.chance(sim.plan.async):
		if t.tx.CommitAsync() != nil {
			t.lost()
			return
		}
		sim.committedAsync = sim.now
		t.committed(key)
	default:
		if t.tx.Commit() != nil {
			t.lost()
			return
		}
		t.committed(key)
	}
	sim.logf("producer %s of a%d ends with %d events", key, t.aggregate, len(t.events))
	if sim.chance(0.5) {
		sim.ring()
	}
	t.done()
}

// committed writes down what a transaction wrote. Whether that stays is known at the end.
func (t *transaction) committed(key string) {
	if len(t.events) > 0 {
		t.sim.record.checker.Add(check.Record{Tx: &check.Tx{Key: key, Events: t.events}})
		t.sim.record.doubtful = append(t.sim.record.doubtful, doubtful{key, t.events[0].ID})
	}
}

func (t *transaction) failed(key string) {
	if len(t.events) > 0 {
		t.sim.record.checker.Add(check.Record{Tx: &check.Tx{Key: key, Events: t.events, Outcome: check.Failed}})
	}
}

// lost ends a transaction that the database has forgotten.
func (t *transaction) lost() {
	t.sim.logf("a transaction of a%d is lost", t.aggregate)
	t.failed(t.sim.newKey())
	t.done()
}

func (t *transaction) done() {
	t.sim.writing--
	if t.ordered {
		t.sim.locks[t.aggregate].release()
	}
	t.then()
}

// ring rings the doorbell at every relay.
func (sim *Simulation) ring() {
	for _, relay := range sim.relays {
		if !relay.gone {
			sim.after(sim.span(0, 2*time.Millisecond), func() { relay.input(func() { relay.core.Bell(sim.now) }) })
		}
	}
}
