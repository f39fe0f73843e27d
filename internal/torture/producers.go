package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
)

// producers write the events of a run.
type producers struct {
	plan      Plan
	env       *Env
	pool      *pgxpool.Pool
	bell      *outbox.Doorbell
	history   *check.Writer
	began     time.Time
	claimed   atomic.Int64 // events of transactions that will commit, or have
	committed atomic.Int64
	keys      atomic.Int64
	rollbacks atomic.Int64
	undone    atomic.Int64
	held      atomic.Int64
	// interrupted counts transactions whose connection broke.
	interrupted atomic.Int64
	// survived counts prepared transactions that outlived the server.
	survived atomic.Int64
	promised promises
	// more tells whether they are to go on when all events are written, which was at the time that is reached, in
	// nanoseconds since began. Nil: they are not.
	more    func() bool
	reached atomic.Int64
}

// A producer waits this long for a transaction: where connections break, an answer may be lost on the way. Where they
// do not (steadyTime), giving up would end the run, so it waits longer.
const transactionTime, steadyTime = 10 * time.Second, 3 * time.Minute

// oddAtLeast is how many transactions of each odd kind there must be in a thorough run.
const oddAtLeast = 10

// tame tells whether there were too few so far.
func (p *producers) tame() bool {
	return min(p.held.Load(), p.rollbacks.Load(), p.undone.Load()) < oddAtLeast
}

// errRolledBack ends a transaction that was meant to fail.
var errRolledBack = errors.New("rolled back on purpose")

// run produces until enough events are committed.
func (p *producers) run(ctx context.Context) error {
	p.began = time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for n := range p.plan.Producers {
		random := rand.New(rand.NewPCG(p.plan.Seed, uint64(n)))
		group.Go(func() error {
			for p.wanted() {
				if err := p.next(ctx, random); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // the producers' own
}

// wanted tells whether there is to be another transaction.
func (p *producers) wanted() bool {
	if p.claimed.Load() < int64(p.plan.Events) {
		return true
	}
	p.reached.CompareAndSwap(0, int64(time.Since(p.began)))
	return p.more != nil && p.more()
}

// next waits until the next transaction is due, and runs it.
func (p *producers) next(ctx context.Context, random *rand.Rand) error {
	due := p.began.Add(time.Duration(float64(p.plan.Production) * float64(p.claimed.Load()) / float64(p.plan.Events)))
	if err := wait.For(ctx, time.Until(due)); err != nil {
		return err
	}
	before := p.interrupted.Load()
	if err := p.transact(ctx, random, draw(random, p.plan.Aggregates)); err != nil {
		return fmt.Errorf("torture: a producer: %w", err)
	}
	if p.interrupted.Load() == before {
		return nil
	}
	return wait.For(ctx, 50*time.Millisecond) // the server may be away for a while
}

// transact runs one transaction and writes down what became of it.
func (p *producers) transact(ctx context.Context, random *rand.Rand, d transactionPlan) error {
	key := fmt.Sprintf("tx-%d", p.keys.Add(1))
	claimed := 0
	var events []check.Event
	limit := steadyTime
	if p.plan.Unsteady {
		limit = transactionTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		var err error
		if events, err = p.fill(ctx, tx, random, d); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, p.env.SQL("INSERT INTO {schema}.torture_done (key) VALUES ($1)"), key); err != nil {
			return fmt.Errorf("the business row: %w", err)
		}
		if d.hold > 0 {
			p.held.Add(1)
			if err := wait.For(ctx, d.hold); err != nil {
				return err
			}
		}
		if err := p.history.Add(check.Record{Tx: &check.Tx{Key: key, Events: events}}); err != nil {
			return err
		}
		if d.fail {
			return errRolledBack
		}
		claimed = len(events)
		p.claimed.Add(int64(claimed))
		return nil
	})
	switch {
	case err == nil:
		p.committed.Add(int64(len(events)))
		p.bell.Ring()
		if p.plan.Forgetful {
			p.promised.add(key, len(events))
			return nil
		}
		return p.history.Add(check.Record{Tx: &check.Tx{Key: key, Outcome: check.OK}})
	case errors.Is(err, errRolledBack):
		p.rollbacks.Add(1)
		return p.history.Add(check.Record{Tx: &check.Tx{Key: key, Outcome: check.Failed}})
	case p.plan.Unsteady && interrupted(err):
		// What became of it is for its business row to tell.
		p.interrupted.Add(1)
		p.claimed.Add(-int64(claimed))
		return nil
	default:
		return fmt.Errorf("transaction %s: %w", key, err)
	}
}

// fill changes the things and emits their events; it returns those that the transaction keeps.
func (p *producers) fill(ctx context.Context, tx pgx.Tx, random *rand.Rand, d transactionPlan) ([]check.Event, error) {
	var kept []check.Event
	for _, id := range d.things {
		var version uint64
		if !d.loose {
			err := tx.QueryRow(ctx,
				p.env.SQL("UPDATE {schema}.torture_things SET version = version + 1 WHERE id = $1 RETURNING version"),
				id).Scan(&version)
			if err != nil {
				return nil, fmt.Errorf("change a thing: %w", err)
			}
		}
		if d.undo {
			if err := p.emitAndUndo(ctx, tx, random, id, version); err != nil {
				return nil, err
			}
		}
		events, err := p.env.contracts.make(random, p.plan.Doomed, id, version)
		if err != nil {
			return nil, err
		}
		if err := p.emit(ctx, tx, events); err != nil {
			return nil, err
		}
		for _, one := range events {
			kept = append(kept, one.known)
		}
	}
	return kept, nil
}

// emitAndUndo emits events that nobody may ever see.
func (p *producers) emitAndUndo(ctx context.Context, tx pgx.Tx, random *rand.Rand, id string, version uint64) error {
	events, err := p.env.contracts.make(random, p.plan.Doomed, id, version)
	if err != nil {
		return err
	}
	inner, err := tx.Begin(ctx)
	if err != nil {
		return fmt.Errorf("a savepoint: %w", err)
	}
	if err := p.emit(ctx, inner, events); err != nil {
		return err
	}
	p.undone.Add(int64(len(events)))
	if err := inner.Rollback(ctx); err != nil {
		return fmt.Errorf("back to the savepoint: %w", err)
	}
	return nil
}

func (p *producers) emit(ctx context.Context, tx pgx.Tx, list []made) error {
	events := make([]outbox.Event, len(list))
	for i := range list {
		events[i] = list[i].event
	}
	_, err := outbox.Emit(ctx, outbox.InSchema(tx, p.env.Run), events...)
	return err
}
