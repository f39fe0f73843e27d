package retention

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// body is the data of every event; with it a payload has about 256 bytes.
type body struct {
	Filler string `json:"filler"`
}

var filler = strings.Repeat("x", 130)

// moved is the contract of all events.
func moved() *outbox.ContractFor[body] {
	return outbox.Define[body](outbox.Contract{Type: "thing_moved", Aggregate: "thing", Topic: "moved"})
}

const probe = "probe" // the aggregate of events that only tell that the relay works

// A load is an open loop: transaction n begins at its time, however long the others take. It notes when each event
// was committed and acknowledged; events are found by a number in their id, so that noting costs no lock.
type load struct {
	plan  Plan
	pool  *pgxpool.Pool
	bell  *outbox.Doorbell
	began time.Time
	// Of each event, in nanoseconds since began; 0: not yet.
	committed, acked []atomic.Int64
	late             []atomic.Int64 // of each transaction, behind its time
	last             []atomic.Int64 // number of the last first delivery of each aggregate
	probes, inverted atomic.Int64
}

// newLoad has room for twice the planned time, and for a machine that stands still.
func newLoad(plan Plan, pool *pgxpool.Pool, bell *outbox.Doorbell) *load {
	length := 4*time.Duration(plan.MostPairs)*(plan.Settle+plan.Length) + 10*time.Minute
	transactions := int(length.Seconds()*float64(plan.Rate))/plan.PerTx + plan.Rate
	l := &load{
		plan: plan, pool: pool, bell: bell, began: time.Now(),
		committed: make([]atomic.Int64, transactions*plan.PerTx), acked: make([]atomic.Int64, transactions*plan.PerTx),
		late: make([]atomic.Int64, transactions), last: make([]atomic.Int64, plan.Aggregates),
	}
	for i := range l.last {
		l.last[i].Store(-1)
	}
	return l
}

func (l *load) since() int64 { return max(int64(time.Since(l.began)), 1) }

// run produces until stop is closed.
func (l *load) run(ctx context.Context, stop <-chan struct{}) error {
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
					return fmt.Errorf("retention: a producer: %w", err)
				}
				l.late[n].Store(int64(time.Since(due)))
			}
			return fmt.Errorf("retention: %d transactions are done and it is not over", len(l.late))
		})
	}
	return group.Wait()
}

// transaction emits events of aggregates that are this worker's alone: their order is that of their numbers.
func (l *load) transaction(ctx context.Context, random *rand.Rand, worker, n int) error {
	events := make([]outbox.Event, l.plan.PerTx)
	for i := range events {
		aggregate := random.IntN(l.plan.Aggregates/l.plan.Workers)*l.plan.Workers + worker
		events[i] = moved().New(strconv.Itoa(aggregate), body{Filler: filler})
		events[i].ID = outbox.NewID()
		binary.BigEndian.PutUint32(events[i].ID[12:], uint32(n*l.plan.PerTx+i))
	}
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, tx, events...)
		return err
	})
	if err != nil {
		return err
	}
	at := l.since()
	for i := range events {
		l.committed[n*l.plan.PerTx+i].Store(at)
	}
	l.bell.Ring()
	return nil
}

// publish is the broker: it acknowledges at once and looks at the clock.
func (l *load) publish(_ context.Context, message *publish.Message) error {
	if message.AggregateID == probe {
		l.probes.Add(1)
		return nil
	}
	aggregate, err := strconv.Atoi(message.AggregateID)
	number := int(binary.BigEndian.Uint32(message.ID[12:]))
	if err != nil || aggregate >= len(l.last) || number >= len(l.acked) {
		return fmt.Errorf("nobody emitted %s of %s", message.ID, message.AggregateID)
	}
	if l.acked[number].CompareAndSwap(0, l.since()) && l.last[aggregate].Swap(int64(number)) > int64(number) {
		l.inverted.Add(1)
	}
	return nil
}

// count is how many events were committed, and how many of them the broker does not have.
func (l *load) count() (committed, missing int) {
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
