package emit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// waiter is an emit that has to wait for another transaction.
type waiter struct {
	tx       pgx.Tx
	done     chan struct{}
	receipts []outbox.Receipt
	err      error
}

// waitingEmit starts an emit and returns when it waits for the transaction of somebody else.
func (p env) waitingEmit(t testing.TB, options pgx.TxOptions, order string, event corpus.Given) *waiter {
	t.Helper()
	w := &waiter{tx: p.beginWith(t, options), done: make(chan struct{})}
	p.mustOrder(t, w.tx, order)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience) // nobody waits forever
	t.Cleanup(cancel)
	go func() {
		defer close(w.done)
		w.receipts, w.err = corpus.Emit(ctx, w.tx, p.Schema, []corpus.Given{event})
	}()
	if waits, err := p.blocked(t.Context(), w.tx, w.done); err != nil || !waits {
		t.Fatalf("the second emit does not wait for the first: %v, %v", err, w.err)
	}
	return w
}

func (p env) beginWith(t testing.TB, options pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := p.pool.BeginTx(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func TestFaultA4SameKeyOtherPayload(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		check := &dedupeCheck{env: p, emit: corpus.Emit}
		check.otherContent(t.Context())
		for _, problem := range check.problems {
			t.Error(problem)
		}

		// The same while the first is still open: the second waits, and is refused only if the first commits.
		for _, commits := range []bool{true, false} {
			key := fmt.Sprintf("first commits: %v", commits)
			first := p.begin(t)
			p.mustEmit(t, first, corpus.OrderCreated(`{"total":1}`).WithKey(key))
			second := p.waitingEmit(t, pgx.TxOptions{}, key, corpus.OrderCreated(`{"total":2}`).WithKey(key))
			if commits {
				mustCommit(t, first)
			} else if err := first.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-second.done
			if errors.Is(second.err, outbox.ErrDedupeMismatch) != commits {
				t.Errorf("%s: %v, %v", key, second.receipts, second.err)
			}
			mustCommit(t, second.tx)
			if n := p.Count(t, "SELECT count(*) FROM {schema}.orders WHERE id = $1", key); n != 1 {
				t.Errorf("%s: the business row of the second is missing", key)
			}
			if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE dedupe_key = $1", key); n != 1 {
				t.Errorf("%s: %d events", key, n)
			}
		}
	})
}

func TestFaultA5FirstOfTwoRollsBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		event := corpus.OrderCreated(`{}`).WithKey("k")
		first := p.begin(t)
		p.mustOrder(t, first, "first")
		p.mustEmit(t, first, event)
		second := p.waitingEmit(t, pgx.TxOptions{}, "second", event)
		if err := first.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-second.done
		if second.err != nil || !second.receipts[0].Created {
			t.Fatalf("the second must insert: %v, %v", second.receipts, second.err)
		}
		mustCommit(t, second.tx)
		p.wantRows(t, 1, 1, 1)
	})
}

// Above READ COMMITTED the loser of a race cannot be told the winner's id, because its snapshot does not
// have it. It must be told to run again, and then finds the event.
func TestFaultA6HigherIsolation(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			options := pgx.TxOptions{IsoLevel: level}
			event := corpus.OrderCreated(`{}`).WithKey("waits " + string(level))
			first := p.begin(t)
			p.mustEmit(t, first, event)
			second := p.waitingEmit(t, options, event.Key, event)
			mustCommit(t, first)
			<-second.done
			p.wantRetry(t, second.tx, event, second.receipts, second.err)

			// The same without waiting: the snapshot is older than the first one's commit.
			event.Key = "older snapshot " + string(level)
			late := p.beginWith(t, options)
			p.mustOrder(t, late, event.Key)
			first = p.begin(t)
			p.mustEmit(t, first, event)
			mustCommit(t, first)
			receipts, err := corpus.Emit(t.Context(), late, p.Schema, []corpus.Given{event})
			p.wantRetry(t, late, event, receipts, err)

			// And when the first one rolls back there is nothing to retry.
			event.Key = "rolled back " + string(level)
			first = p.begin(t)
			p.mustEmit(t, first, event)
			second = p.waitingEmit(t, options, event.Key, event)
			if err := first.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-second.done
			if second.err != nil || !second.receipts[0].Created {
				t.Errorf("%s: %v, %v", event.Key, second.receipts, second.err)
			}
			mustCommit(t, second.tx)
		}
	})
}

func (p env) wantRetry(t *testing.T, tx pgx.Tx, event corpus.Given, receipts []outbox.Receipt, err error) {
	t.Helper()
	if !outbox.Retryable(err) || errors.Is(err, outbox.ErrRefused) || receipts != nil {
		t.Errorf("%s: want a retryable error, got %v, %v", event.Key, receipts, err)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Errorf("%s: a transaction that PostgreSQL gave up was committed", event.Key)
	}
	if n := p.Count(t, "SELECT count(*) FROM {schema}.orders WHERE id = $1", event.Key); n != 0 {
		t.Errorf("%s: the business row of a lost transaction is there", event.Key)
	}
	again := p.begin(t)
	if receipts := p.mustEmit(t, again, event); receipts[0].Created {
		t.Errorf("%s: the retry made a second event", event.Key)
	}
	mustCommit(t, again)
}

// keysPerCall is enough for two calls in opposite orders to meet in the middle.
const keysPerCall = 60

// checkOrders lets two calls with the same keys in opposite orders meet, again and again, until there is a
// deadlock. In every tenth round somebody holds the key in the middle until both wait, so that they do meet.
func checkOrders(ctx context.Context, p env, emit corpus.Emitter, rounds int) (deadlocks int, problems []string) {
	round := 0
	for ; round < rounds && deadlocks == 0; round++ {
		var forwards []corpus.Given
		for i := range keysPerCall {
			forwards = append(forwards, corpus.OrderCreated(`{}`).WithKey(fmt.Sprintf("round %d key %02d", round, i)))
		}
		backwards := slices.Clone(forwards)
		slices.Reverse(backwards)
		held := forwards[keysPerCall/2 : keysPerCall/2+1]
		if round%10 > 0 {
			held = nil
		}
		for _, err := range p.emitTogether(ctx, emit, held, forwards, backwards) {
			if outbox.Retryable(err) {
				deadlocks++
			} else if err != nil {
				problems = append(problems, fmt.Sprintf("round %d: %v", round, err))
			}
		}
	}
	var events int
	if err := p.pool.QueryRow(ctx, p.SQL("SELECT count(*) FROM {schema}.outbox_events")).Scan(&events); err != nil {
		problems = append(problems, err.Error())
	}
	// A deadlock takes one of the two, never half of one.
	if events != round*keysPerCall {
		problems = append(problems, fmt.Sprintf("%d events after %d rounds, want %d", events, round, round*keysPerCall))
	}
	return deadlocks, problems
}

// emitTogether emits in several transactions at once. If somebody holds the key of an event, each of them comes to wait
// for him, or for another one that does.
func (p env) emitTogether(ctx context.Context, emit corpus.Emitter, held []corpus.Given,
	calls ...[]corpus.Given,
) []error {
	ctx, cancel := context.WithTimeout(ctx, eventually.Patience) // nobody waits forever
	defer cancel()
	all := make([]pgx.Tx, len(calls)+1)
	for i := range all {
		tx, err := p.pool.Begin(ctx)
		if err != nil {
			return []error{err}
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		all[i] = tx
	}
	holder := all[len(calls)]
	if held != nil {
		if _, err := corpus.Emit(ctx, holder, p.Schema, held); err != nil {
			return []error{err}
		}
	}
	errs := make([]error, len(all)) // the last one is the holder's
	var group sync.WaitGroup
	for i, events := range calls {
		done := make(chan struct{})
		group.Go(func() {
			defer close(done)
			if _, errs[i] = emit(ctx, all[i], p.Schema, events); errs[i] == nil {
				errs[i] = all[i].Commit(ctx)
			} else {
				_ = all[i].Rollback(context.WithoutCancel(ctx)) // the others go on
			}
		})
		if held == nil {
			continue
		}
		waits, err := p.blocked(ctx, all[i], done)
		if err == nil && !waits {
			err = fmt.Errorf("call %d did not wait for anybody", i)
		}
		errs[len(calls)] = errors.Join(errs[len(calls)], err)
	}
	errs[len(calls)] = errors.Join(errs[len(calls)], holder.Rollback(ctx))
	group.Wait()
	return errs
}

func TestFaultA7NoDeadlockWithinOneCall(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		rounds := atLeast(t, "ROUNDS", 200)
		deadlocks, problems := checkOrders(t.Context(), p, corpus.Emit, rounds)
		if deadlocks > 0 || len(problems) > 0 {
			t.Errorf("%d deadlocks in %d rounds; %s", deadlocks, rounds, strings.Join(problems, "; "))
		}
		figure(t, "rounds", rounds)
		figure(t, "deadlocks", deadlocks)
	})
}

// Two calls in one transaction can still deadlock, which the documentation says. It is then an error that
// asks for a retry, and neither transaction is half applied.
func TestFaultA7DeadlockAcrossCalls(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		one, two := corpus.OrderCreated(`{}`).WithKey("1"), corpus.OrderCreated(`{}`).WithKey("2")
		first, second := p.begin(t), p.begin(t)
		// The second finds the deadlock, because its patience is shorter.
		for tx, patience := range map[pgx.Tx]string{first: "1min", second: "10ms"} {
			if _, err := tx.Exec(t.Context(), "SET LOCAL deadlock_timeout = '"+patience+"'"); err != nil {
				t.Fatal(err)
			}
		}
		p.mustOrder(t, first, "first")
		p.mustEmit(t, first, one)
		p.mustOrder(t, second, "second")
		p.mustEmit(t, second, two)
		var firstErr error
		done := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		go func() {
			defer close(done)
			_, firstErr = corpus.Emit(ctx, first, p.Schema, []corpus.Given{two})
		}()
		if waits, err := p.blocked(t.Context(), first, done); err != nil || !waits {
			t.Fatalf("the first does not wait for the second: %v", err)
		}
		_, err := corpus.Emit(ctx, second, p.Schema, []corpus.Given{one})
		if !outbox.Retryable(err) {
			t.Fatalf("want a deadlock, got %v", err)
		}
		_ = second.Rollback(t.Context())
		<-done
		if firstErr != nil {
			t.Fatal(firstErr)
		}
		mustCommit(t, first)
		p.wantRows(t, 1, 2, 2)
	})
}
