// Package steady is a load of so many events per second, through an outbox and a relay to a broker that takes them at
// once, and how long each of them took from its commit to the broker.
package steady

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// body is the data of every event; with it a payload has about 256 bytes.
type body struct {
	Filler string `json:"filler"`
}

var filler = strings.Repeat("x", 130)

// moved is the contract of all events.
func moved() *outbox.ContractFor[body] {
	return outbox.Define[body](outbox.Contract{Type: "thing_moved", Aggregate: aggregateType, Topic: "moved"})
}

const (
	aggregateType = "thing"
	probe         = "probe" // the aggregate of events that only tell that the relay works
)

// Plan is what flows.
type Plan struct {
	// Rate is in events per second, PerTx of them in a transaction, from Workers producers. Each does one transaction at a
	// time, and whoever is behind hurries: there should be enough of them to keep the rate also when a commit takes 50 ms.
	Rate, PerTx, Workers, Aggregates int
	// Longest is how long it can flow. It ends a run that hangs.
	Longest time.Duration
	// Drain is how long the last events may take.
	Drain time.Duration
}

// A Load is an open loop: transaction n begins at its time, however long the others take. It notes when each event was
// committed and acknowledged; events are found by a number in their id, so that noting costs no lock.
type Load struct {
	plan   Plan
	name   string // of the relay
	db     *bench.Outbox
	say    io.Writer
	logged *logs
	bell   *outbox.Doorbell
	began  time.Time
	// Of each event, in nanoseconds since began; 0: not yet.
	committed, acked []atomic.Int64
	late             []atomic.Int64 // of each transaction, behind its time
	last             []atomic.Int64 // number of the last first delivery of each aggregate
	probes, inverted atomic.Int64
}

// New is a load on this outbox, with a relay of this name. What the relay warns of goes to say.
func New(plan Plan, db *bench.Outbox, name string, say io.Writer) *Load {
	transactions := int(plan.Longest.Seconds()*float64(plan.Rate))/plan.PerTx + plan.Rate
	l := &Load{
		plan: plan, name: name, db: db, say: say, logged: &logs{}, began: time.Now(),
		committed: make([]atomic.Int64, transactions*plan.PerTx), acked: make([]atomic.Int64, transactions*plan.PerTx),
		late: make([]atomic.Int64, transactions), last: make([]atomic.Int64, plan.Aggregates),
	}
	for i := range l.last {
		l.last[i].Store(-1)
	}
	return l
}

// Since is the time on the load's clock.
func (l *Load) Since() int64 { return max(int64(time.Since(l.began)), 1) }

// run produces until stop is closed.
func (l *Load) run(ctx context.Context, stop <-chan struct{}) error {
	group, ctx := errgroup.WithContext(ctx)
	for worker := range l.plan.Workers {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			for n := worker; n < len(l.late); n += l.plan.Workers {
				due := l.began.Add(time.Duration(n) * time.Second * time.Duration(l.plan.PerTx) / time.Duration(l.plan.Rate))
				select {
				case <-stop:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(time.Until(due)):
				}
				if err := l.transaction(ctx, random, worker, n); err != nil {
					return fmt.Errorf("steady: a producer: %w", err)
				}
				l.late[n].Store(int64(time.Since(due)))
			}
			return fmt.Errorf("steady: %d transactions are done and it is not over", len(l.late))
		})
	}
	return group.Wait()
}

// transaction emits events of aggregates that are this worker's alone: their order is that of their numbers.
func (l *Load) transaction(ctx context.Context, random *rand.Rand, worker, n int) error {
	events := make([]outbox.Event, l.plan.PerTx)
	for i := range events {
		aggregate := random.IntN(l.plan.Aggregates/l.plan.Workers)*l.plan.Workers + worker
		events[i] = moved().New(strconv.Itoa(aggregate), body{Filler: filler})
		events[i].ID = outbox.NewID()
		binary.BigEndian.PutUint32(events[i].ID[12:], uint32(n*l.plan.PerTx+i))
	}
	err := pgx.BeginFunc(ctx, l.db.Producers, func(tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, tx, events...)
		return err
	})
	if err != nil {
		return err
	}
	at := l.Since()
	for i := range events {
		l.committed[n*l.plan.PerTx+i].Store(at)
	}
	l.bell.Ring()
	return nil
}

// publish is the broker: it acknowledges at once and looks at the clock.
func (l *Load) publish(_ context.Context, message *publish.Message) error {
	if message.AggregateType != aggregateType {
		return nil // not of this load
	}
	if message.AggregateID == probe {
		l.probes.Add(1)
		return nil
	}
	aggregate, err := strconv.Atoi(message.AggregateID)
	number := int(binary.BigEndian.Uint32(message.ID[12:]))
	if err != nil || aggregate >= len(l.last) || number >= len(l.acked) {
		return fmt.Errorf("nobody emitted %s of %s", message.ID, message.AggregateID)
	}
	if l.acked[number].CompareAndSwap(0, l.Since()) && l.last[aggregate].Swap(int64(number)) > int64(number) {
		l.inverted.Add(1)
	}
	return nil
}

// Count is how many events were committed, and how many of them the broker does not have.
func (l *Load) Count() (committed, missing int) {
	for i := range l.committed {
		if l.committed[i].Load() != 0 {
			committed++
			if l.acked[i].Load() == 0 {
				missing++
			}
		}
	}
	return committed, missing
}

// Inverted is how many events came before an earlier one of their aggregate.
func (l *Load) Inverted() int { return int(l.inverted.Load()) }

// Warnings is how many lines the relay has logged.
func (l *Load) Warnings() int { return l.logged.lines() }
