package emit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// race is what became of pairs of transactions that emitted with one dedupe key at the same time.
type race struct {
	mu        sync.Mutex
	Pairs     int
	Rows      int // pairs that left exactly one event
	Errors    int // transactions that failed
	Rollbacks int // transactions that were rolled back on purpose
	Waits     int // pairs in which the second was seen waiting for the first
	Problems  []string
}

// racer is one transaction of a pair.
type racer struct {
	tx       pgx.Tx
	order    string
	rollback bool
	receipt  outbox.Receipt
	err      error
}

// concurrentPairs at a time, each with two transactions and somebody who watches them.
const concurrentPairs = 12

// checkPairs lets pairs of transactions race for one key each. In every third pair the first one rolls
// back, in every third the second. In half of them the second is known to wait for the first; the others
// run as they like.
func checkPairs(ctx context.Context, p env, emit corpus.Emitter, pairs int) *race {
	result := &race{Pairs: pairs}
	var group sync.WaitGroup
	next := make(chan int)
	for range concurrentPairs {
		group.Go(func() {
			for i := range next {
				if err := result.pair(ctx, p, emit, i); err != nil {
					result.failf("pair %d: %v", i, err)
				}
			}
		})
	}
	for i := range pairs {
		next <- i
	}
	close(next)
	group.Wait()
	return result
}

func (r *race) failf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

func (r *race) add(to *int, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*to += n
}

func (r *race) pair(ctx context.Context, p env, emit corpus.Emitter, i int) error {
	ctx, cancel := context.WithTimeout(ctx, eventually.Patience) // nobody waits forever
	defer cancel()
	key := fmt.Sprintf("pair-%d", i)
	racers := []*racer{
		{order: key + "-first", rollback: i/2%3 == 1},
		{order: key + "-second", rollback: i/2%3 == 2},
	}
	for _, each := range racers {
		tx, err := p.pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		each.tx = tx
		if err := p.order(ctx, tx, each.order); err != nil {
			return err
		}
		if each.rollback {
			r.add(&r.Rollbacks, 1)
		}
	}
	event := corpus.OrderCreated(fmt.Sprintf(`{"pair":%d}`, i)).WithKey(key)
	if i%2 == 0 {
		if err := r.inTurn(ctx, p, emit, event, racers); err != nil {
			return err
		}
	} else {
		var group sync.WaitGroup
		for _, each := range racers {
			group.Go(func() { each.run(ctx, p, emit, event) })
		}
		group.Wait()
	}
	return r.verify(ctx, p, key, racers)
}

// inTurn lets the first emit, waits until the second waits for it, and then ends the first.
func (r *race) inTurn(ctx context.Context, p env, emit corpus.Emitter, event corpus.Given, racers []*racer) error {
	first, second := racers[0], racers[1]
	first.emit(ctx, p, emit, event)
	done := make(chan struct{})
	go func() {
		defer close(done)
		second.run(ctx, p, emit, event)
	}()
	waits, err := p.blocked(ctx, second.tx, done)
	if waits {
		r.add(&r.Waits, 1)
	}
	first.end(ctx)
	<-done
	return err
}

func (r *racer) run(ctx context.Context, p env, emit corpus.Emitter, event corpus.Given) {
	r.emit(ctx, p, emit, event)
	r.end(ctx)
}

func (r *racer) emit(ctx context.Context, p env, emit corpus.Emitter, event corpus.Given) {
	receipts, err := emit(ctx, r.tx, p.Schema, []corpus.Given{event})
	if err != nil {
		r.err = err
		return
	}
	r.receipt = receipts[0]
}

func (r *racer) end(ctx context.Context) {
	if r.rollback {
		r.err = errors.Join(r.err, r.tx.Rollback(ctx))
		return
	}
	r.err = errors.Join(r.err, r.tx.Commit(ctx))
}

// verify holds one pair to the promise: one event, and everybody who committed has its id.
func (r *race) verify(ctx context.Context, p env, key string, racers []*racer) error {
	rows, err := p.pool.Query(ctx, p.SQL("SELECT id::text FROM {schema}.outbox_events WHERE dedupe_key = $1"), key)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(ids) != 1 {
		return errors.Join(fmt.Errorf("%d events, want 1", len(ids)), racers[0].err, racers[1].err)
	}
	r.add(&r.Rows, 1)
	created := 0
	for _, each := range racers {
		if each.err != nil {
			r.add(&r.Errors, 1)
			r.failf("%s: %v", each.order, each.err)
			continue
		}
		if each.rollback {
			continue
		}
		if each.receipt.ID.String() != ids[0] {
			r.failf("%s was told event %s, stored is %s", each.order, each.receipt.ID, ids[0])
		}
		if each.receipt.Created {
			created++
		}
	}
	if created != 1 {
		r.failf("%s: %d of those who committed were told that they created the event", key, created)
	}
	return r.verifyOrders(ctx, p, racers)
}

func (r *race) verifyOrders(ctx context.Context, p env, racers []*racer) error {
	for _, each := range racers {
		var n int
		if err := p.pool.QueryRow(ctx, p.SQL("SELECT count(*) FROM {schema}.orders WHERE id = $1"),
			each.order).Scan(&n); err != nil {
			return err
		}
		if (n == 1) == each.rollback {
			return fmt.Errorf("%s: %d business rows, rolled back: %v", each.order, n, each.rollback)
		}
	}
	return nil
}

func TestDedupeRace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		pairs := atLeast(t, "PAIRS", 200)
		result := checkPairs(t.Context(), p, corpus.Emit, pairs)
		for _, problem := range result.Problems {
			t.Error(problem)
		}
		if result.Waits < pairs/2 {
			t.Errorf("in %d of %d pairs the second waited for the first: they hardly raced", result.Waits, pairs)
		}
		figure(t, "pairs", result.Pairs)
		figure(t, "pair_rows", result.Rows)
		figure(t, "pair_errors", result.Errors)
		figure(t, "pair_rollbacks", result.Rollbacks)
		figure(t, "pair_waits", result.Waits)
	})
}

// The same for the function that other languages call.
func TestDedupeRaceInSQL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		result := checkPairs(t.Context(), p, corpus.EmitSQL, 48)
		for _, problem := range result.Problems {
			t.Error(problem)
		}
	})
}
