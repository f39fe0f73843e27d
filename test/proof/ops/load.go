package ops

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/outbox"
)

// A load is an open loop: transaction n, with one live event, begins at its time, however long the others take. It
// notes when each was committed and arrived; events are found by a number in their id, so that noting costs no lock.
type load struct {
	plan  Plan
	pool  *pgxpool.Pool
	bell  *outbox.Doorbell
	began time.Time
	// Of each event, in nanoseconds since began; 0: not yet.
	committed, arrived []atomic.Int64
	ids                []outbox.ID

	mu   sync.Mutex
	late []outbox.ID // orders that were emitted behind dead ones
}

// longest is how long live events can flow: it ends a run that hangs.
const longest = time.Hour

func newLoad(plan Plan, pool *pgxpool.Pool, bell *outbox.Doorbell) *load {
	number := int(longest.Seconds()) * plan.LiveRate
	return &load{
		plan: plan, pool: pool, bell: bell, began: time.Now(), committed: make([]atomic.Int64, number),
		arrived: make([]atomic.Int64, number), ids: make([]outbox.ID, number),
	}
}

func (l *load) since() int64 { return max(int64(time.Since(l.began)), 1) }

// run produces until stop is closed.
func (l *load) run(ctx context.Context, stop <-chan struct{}) error {
	group, ctx := errgroup.WithContext(ctx)
	for worker := range l.plan.Workers {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			for n := worker; n < len(l.ids); n += l.plan.Workers {
				due := l.began.Add(time.Duration(n) * time.Second / time.Duration(l.plan.LiveRate))
				select {
				case <-stop:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(time.Until(due)):
				}
				// Things are one worker's alone, so that the order of their events is that of their numbers.
				thing := random.IntN(l.plan.Things/l.plan.Workers)*l.plan.Workers + worker
				if err := l.emit(ctx, thing, n); err != nil {
					return fmt.Errorf("ops: a producer: %w", err)
				}
			}
			return fmt.Errorf("ops: it is not over after %s", longest)
		})
	}
	return group.Wait()
}

func (l *load) emit(ctx context.Context, thing, n int) error {
	event := moved().New(strconv.Itoa(thing), body{Filler: filler})
	event.ID = outbox.NewID()
	binary.BigEndian.PutUint32(event.ID[12:], uint32(n))
	l.ids[n] = event.ID
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, tx, event)
		return err
	})
	if err != nil {
		return err
	}
	l.committed[n].Store(l.since())
	l.bell.Ring()
	return nil
}

// follow emits orders behind the dead ones that block, as they come while somebody repairs.
func (l *load) follow(ctx context.Context) error {
	for range l.plan.Followers {
		for aggregate := range l.plan.Aggregates {
			if !l.plan.blocked(aggregate) {
				continue
			}
			event := held().New(strconv.Itoa(aggregate), body{Filler: filler})
			event.ID = outbox.NewID()
			err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
				_, err := outbox.Emit(ctx, tx, event)
				return err
			})
			if err != nil {
				return fmt.Errorf("ops: an order behind a dead one: %w", err)
			}
			l.mu.Lock()
			l.late = append(l.late, event.ID)
			l.mu.Unlock()
		}
	}
	return nil
}

// came notes that a live event has arrived.
func (l *load) came(id outbox.ID) {
	if n := int(binary.BigEndian.Uint32(id[12:])); n < len(l.ids) {
		l.arrived[n].CompareAndSwap(0, l.since())
	}
}

// emitted are the live events that were committed, and how many of them have not arrived.
func (l *load) emitted() (ids []outbox.ID, missing int) {
	for n := range l.ids {
		if l.committed[n].Load() == 0 {
			continue
		}
		ids = append(ids, l.ids[n])
		if l.arrived[n].Load() == 0 {
			missing++
		}
	}
	return ids, missing
}

// latencies are those of the live events that were committed in one of the stretches.
func (l *load) latencies(among func(at int64) bool) (list []time.Duration) {
	for n := range l.ids {
		committed, arrived := l.committed[n].Load(), l.arrived[n].Load()
		if committed != 0 && arrived != 0 && among(committed) {
			// A relay can be faster than the answer to the producer.
			list = append(list, time.Duration(max(arrived-committed, 0)))
		}
	}
	return list
}
