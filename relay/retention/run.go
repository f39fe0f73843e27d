package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// run is one run over one kind of row.
type run struct {
	*Runner
	kind   kind
	worker string
	result *Result
}

// errTaken: somebody else is at it.
var errTaken = errors.New("somebody else is at it")

func (r *run) do(ctx context.Context) error {
	last, err := r.begin(ctx)
	if err == nil {
		err = r.work(ctx, last)
		// Also when ctx is done: otherwise the others would wait until this run counts as dead.
		err = errors.Join(err, r.end(context.WithoutCancel(ctx)))
	}
	if errors.Is(err, errTaken) {
		r.result.Busy = append(r.result.Busy, r.kind.name)
		return nil
	}
	return withGrant(err)
}

// withGrant says what a role needs that may not do this.
func withGrant(err error) error {
	if sqlstate.PermissionDenied(err) {
		return fmt.Errorf("%w; run `outboxctl grant janitor <role>`", err)
	}
	return err
}

// work deletes what is due, unless that is too much to be true.
func (r *run) work(ctx context.Context, last memory) error {
	cutOff := last.now.Add(-r.kind.window)
	reason, err := r.implausible(ctx, last, cutOff)
	if err != nil {
		return err
	}
	if reason != "" {
		r.result.Halted = append(r.result.Halted, Halt{Kind: r.kind.name, CutOff: cutOff, Reason: reason})
		r.config.Logger.WarnContext(ctx, "retention deletes nothing", slog.String("kind", r.kind.name),
			slog.Time("cut_off", cutOff), slog.String("reason", reason))
		return r.change(ctx, "unconfirmed", reason)
	}
	if err := r.change(ctx, "accept", cutOff); err != nil {
		return err
	}
	return r.kind.empty(r, ctx, r.kind.reach(cutOff, last.events))
}

// begin takes the kind for this run and remembers the last one.
func (r *run) begin(ctx context.Context) (last memory, err error) {
	err = r.inTx(ctx, statementTimeout, func(tx pgx.Tx) error {
		row := tx.QueryRow(ctx, r.statement("begin"), r.kind.name, r.worker, workFor.Milliseconds())
		return row.Scan(&last.now, &last.cutOff, &last.ranAt, &last.events)
	})
	// No row, or the row is locked: another run has it.
	if errors.Is(err, pgx.ErrNoRows) || sqlstate.Of(err) == sqlstate.LockNotAvailable {
		return last, errTaken
	}
	if err != nil {
		return last, fmt.Errorf("begin: %w", err)
	}
	return last, nil
}

func (r *run) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := r.change(ctx, "end"); err != nil && !errors.Is(err, errTaken) {
		return err
	}
	return nil
}

// change writes something into the row of this kind, while this run has it.
func (r *run) change(ctx context.Context, file string, args ...any) error {
	err := r.inTx(ctx, statementTimeout, func(tx pgx.Tx) error { return r.changeIn(ctx, tx, file, args...) })
	if err != nil && !errors.Is(err, errTaken) {
		return fmt.Errorf("%s: %w", file, err)
	}
	return err
}

func (r *run) changeIn(ctx context.Context, tx pgx.Tx, file string, args ...any) error {
	answer, err := tx.Exec(ctx, r.statement(file), append([]any{r.kind.name, r.worker}, args...)...)
	if err != nil {
		return err //nolint:wrapcheck // change says what it was
	}
	if answer.RowsAffected() == 0 {
		return errTaken
	}
	return nil
}

// pace is how large the next batch is.
type pace struct {
	size, most int
	failures   int // in a row
}

// after has a statement that took long followed by a smaller one. It fails where that does not help any more.
func (p *pace) after(took time.Duration, err error) error {
	switch {
	case err == nil:
		p.failures = 0
	case p.failures < tries && tooLong(err):
		p.failures++
	default:
		return err
	}
	if err != nil || took > longBatch {
		p.size = max(p.size/2, smallestBatch)
	} else {
		p.size = min(2*p.size, p.most)
	}
	return nil
}

// batches runs one kind of batch until there is nothing left for it.
func (r *run) batches(ctx context.Context, cutOff time.Time) error {
	pace, place := pace{size: r.config.Batch, most: r.config.Batch}, int64(0)
	for {
		size, began := pace.size, time.Now()
		var seen, gone, next int64
		err := r.once(ctx, func(tx pgx.Tx) (int64, *int64, error) {
			err := tx.QueryRow(ctx, r.statement(r.kind.name), place, cutOff, size).Scan(&seen, &gone, &next)
			return gone, nil, err //nolint:wrapcheck // once says what it was
		})
		took := time.Since(began)
		if stop := pace.after(took, err); stop != nil {
			return stop
		}
		if err == nil {
			r.note(took, gone)
			if seen < int64(size) {
				return nil
			}
			if gone == 0 && next == place { // as many as a batch have the same time, and all of them must stay
				next++
			}
			place = next
		}
		// Half of the time at most, so that a slow server is not kept busy.
		if (gone > 0 || err != nil) && !r.rest(ctx, max(r.config.Pause, took)) {
			return ctx.Err()
		}
	}
}

// note counts what a batch deleted, by the parts of the kind, and reports it to Progress.
func (r *run) note(took time.Duration, gone ...int64) {
	var rows int64
	for i, n := range gone {
		*r.kind.parts[i].of(r.result) += n
		rows += n
	}
	if rows == 0 {
		return
	}
	r.result.Batches++
	r.result.Slowest = max(r.result.Slowest, took)
	if r.config.Progress != nil {
		r.config.Progress(*r.result)
	}
}

// once is one batch: what goes, how far it came, and the sign of life, in one transaction.
func (r *run) once(ctx context.Context, batch func(pgx.Tx) (gone int64, place *int64, err error)) error {
	err := r.inTx(ctx, statementTimeout, func(tx pgx.Tx) error {
		gone, place, err := batch(tx)
		if err != nil {
			return err
		}
		return r.changeIn(ctx, tx, "prolong", workFor.Milliseconds(), gone, place)
	})
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// inTx runs a transaction that cannot last. It is not flushed: what a crash takes back is deleted again.
func (r *run) inTx(ctx context.Context, timeout time.Duration, do func(pgx.Tx) error) error {
	tx, err := r.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = tx.Exec(ctx, `SELECT pg_catalog.set_config('statement_timeout', $1, true), 
	    pg_catalog.set_config('lock_timeout', $2, true), pg_catalog.set_config('jit', 'off', true),
	    pg_catalog.set_config('synchronous_commit', 'off', true)`,
		fmt.Sprint(timeout.Milliseconds()), fmt.Sprint(lockTimeout.Milliseconds()))
	if err != nil {
		return fmt.Errorf("bound the transaction: %w", err)
	}
	if err := do(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// tooLong tells whether a smaller batch may do.
func tooLong(err error) bool {
	switch sqlstate.Of(err) {
	case sqlstate.QueryCanceled, sqlstate.LockNotAvailable, sqlstate.DeadlockDetected:
		return true
	}
	return false
}
