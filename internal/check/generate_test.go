package check_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/posthaste-dev/posthaste/internal/check"
)

const (
	lanes = 4
	lease = 1_000
)

// pending is an event on its way.
type pending struct {
	event check.Event
	row   *check.Row
}

// run makes valid histories: one relay at a time that does everything a relay may do, and has everything
// done to it that may happen. It is a script and not a relay: it knows the answer beforehand.
type run struct {
	rand    *rand.Rand
	history check.History
	rows    []*check.Row
	effects map[check.ID]bool
	letters []check.Letter
	actions []check.Action
	asked   []check.Request

	now       int64
	arrivals  uint64
	processes int
	ids       uint64
	queues    [][]*pending
	versions  []uint64
}

// generate returns a history that must pass.
func generate(seed uint64, aggregates, events int) check.History {
	r := &run{
		rand: rand.New(rand.NewPCG(seed, 1)), effects: map[check.ID]bool{}, now: 1,
		queues: make([][]*pending, aggregates), versions: make([]uint64, aggregates),
	}
	r.start()
	for r.ids < uint64(events) {
		r.produce(r.rand.IntN(aggregates))
	}
	for {
		open := r.nextAggregate()
		if open < 0 {
			break
		}
		r.relay(open)
	}
	r.dump()
	return r.history
}

func (r *run) add(record check.Record) { r.history = append(r.history, record) }

func (r *run) tick() int64 { r.now++; return r.now }

func (r *run) name() string { return fmt.Sprintf("relay-%d", r.processes) }

func (r *run) step(s check.Step) {
	s.Relay, s.Token, s.At, s.Next = r.name(), fmt.Sprintf("token-%d", r.processes), r.tick(), r.arrivals+1
	r.add(check.Record{Step: &s})
}

// start starts another process of the relay after all leases of the last one have expired.
func (r *run) start() {
	if r.processes > 0 {
		r.now += lease
	}
	r.processes++
	for lane := range lanes {
		r.step(check.Step{Do: check.Acquire, Lane: lane, Until: r.now + 1 + lease})
	}
}

// renew keeps the leases, so that settles are not far behind them.
func (r *run) renew() {
	for lane := range lanes {
		r.step(check.Step{Do: check.Renew, Lane: lane, Until: r.now + 1 + lease})
	}
}

func (r *run) sum() check.Sum {
	return check.SumOf(binary.LittleEndian.AppendUint64(nil, r.rand.Uint64()))
}

func (r *run) newID() check.ID {
	r.ids++
	var id check.ID
	binary.BigEndian.PutUint64(id[8:], r.ids)
	id[0] = 1
	return id
}

// produce writes one transaction of one to three events of an aggregate.
func (r *run) produce(aggregate int) {
	tx := check.Tx{Key: fmt.Sprintf("tx-%d", r.ids)}
	for range 1 + r.rand.IntN(3) {
		event := check.Event{
			ID: r.newID(), Type: "changed", Topic: fmt.Sprintf("topic-%d", aggregate%2),
			Aggregate: fmt.Sprintf("default/order/%d", aggregate),
			Key:       fmt.Sprint(aggregate), Payload: r.sum(), Headers: r.sum(),
		}
		if r.rand.IntN(12) == 0 {
			event.Type = "newer"
		}
		if aggregate%5 != 4 { // every fifth has writers that do not exclude one another
			r.versions[aggregate]++
			event.Version = r.versions[aggregate]
		}
		tx.Events = append(tx.Events, event)
	}
	r.add(check.Record{Tx: &tx})
	r.endTx(&tx, aggregate)
}

func (r *run) endTx(tx *check.Tx, aggregate int) {
	end := func(o check.Outcome) { r.add(check.Record{Tx: &check.Tx{Key: tx.Key, Outcome: o}}) }
	switch r.rand.IntN(8) {
	case 0:
		end(check.Failed)
		return
	case 1: // the answer never came, and it had not committed
		end(check.Unknown)
		end(check.Failed)
		return
	case 2:
		end(check.Unknown)
		end(check.OK)
	case 3: // the producer died; the business row is there
		end(check.OK)
	default:
		end(check.OK)
	}
	for _, event := range tx.Events {
		row := &check.Row{ID: event.ID, Seq: int64(len(r.rows) + 1), Type: event.Type}
		r.rows = append(r.rows, row)
		r.change(row.ID, check.Absent, check.Ready)
		r.queues[aggregate] = append(r.queues[aggregate], &pending{event: event, row: row})
	}
}

func (r *run) change(id check.ID, from, to check.State) {
	r.add(check.Record{Change: &check.Change{ID: id, From: from, To: to}})
}

// to moves a row and records the change.
func (r *run) to(p *pending, to check.State) {
	r.change(p.row.ID, p.row.State, to)
	p.row.State, p.row.Published = to, to == check.Published
}

// nextAggregate picks one that has something to do, or -1.
func (r *run) nextAggregate() int {
	begin := r.rand.IntN(len(r.queues))
	for i := range r.queues {
		if at := (begin + i) % len(r.queues); len(r.queues[at]) > 0 {
			return at
		}
	}
	return -1
}

// dump writes the final tables and the end.
func (r *run) dump() {
	for lane := range lanes {
		r.step(check.Step{Do: check.Release, Lane: lane})
	}
	for _, row := range r.rows {
		r.add(check.Record{Row: row})
		if held := row.State; held >= check.Retrying && held <= check.DeadBlocking {
			r.add(check.Record{Held: &check.Held{ID: row.ID, Seq: row.Seq, Kind: held, Due: held == check.Retrying}})
		}
		if r.effects[row.ID] {
			r.add(check.Record{Effect: &check.Effect{ID: row.ID, Count: 1}})
		}
	}
	for i := range r.letters {
		r.add(check.Record{Letter: &r.letters[i]})
	}
	for i := range r.actions {
		r.add(check.Record{Action: &r.actions[i]})
	}
	for i := range r.asked {
		r.add(check.Record{Request: &r.asked[i]})
	}
	r.add(check.Record{
		End: &check.End{
			Interleaved: true, Drained: true, Dumped: true, Held: true, Effects: true, UnknownTypes: []string{"newer"},
		},
	})
}
