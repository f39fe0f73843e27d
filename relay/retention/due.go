package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Due is how much of one kind a run would delete.
type Due struct {
	Kind   string // published, discarded, dead or dedupe
	CutOff time.Time
	// Rows is how many are older than the cut-off. Of dead letters and discarded events these are those that would
	// go; of the other two it is the most, because a few of them may have to stay: events that shall be delivered
	// again, and keys of events that are still there.
	Rows int64
	// Halted says why a run would delete nothing of them; empty: it would.
	Halted string
}

// Due counts what [Runner.Once] would delete now, and changes nothing. Kinds that are kept forever are not in the
// answer. It reads indexes, and gives up on a kind after a minute.
func (r *Runner) Due(ctx context.Context) ([]Due, error) {
	var all []Due
	var problems []error
	var events *time.Time // the cut-off that events would have by the time the keys' turn comes
	for _, kind := range r.kinds {
		if kind.window < 0 {
			continue
		}
		run := run{Runner: r, kind: kind, worker: outbox.NewID().String()}
		due, err := run.dueNow(ctx, &events)
		all = append(all, due...)
		if err != nil {
			problems = append(problems, fmt.Errorf("retention of %s: %w", kind.name, withGrant(err)))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return all, errors.Join(problems...)
}

// dueNow counts one kind. The cut-off of events is passed on to those that follow them.
func (r *run) dueNow(ctx context.Context, events **time.Time) (all []Due, err error) {
	last, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	if *events != nil {
		last.events = *events
	}
	cutOff := last.now.Add(-r.kind.window)
	reason, err := r.implausible(ctx, last, cutOff)
	if err != nil {
		return nil, err
	}
	if r.kind.name == "published" && reason == "" {
		*events = &cutOff
	}
	for _, batch := range r.kind.batches {
		due := Due{Kind: batch.file, CutOff: cutOff, Halted: reason}
		if due.Rows, err = r.count(ctx, batch, r.kind.reach(cutOff, last.events)); err != nil {
			return all, err
		}
		all = append(all, due)
	}
	return all, nil
}

// look reads what the database knows of the last run, and takes nothing.
func (r *run) look(ctx context.Context) (last memory, err error) {
	err = r.inTx(ctx, statementTimeout, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, r.statement("look"), r.kind.name).Scan(&last.now, &last.cutOff, &last.ranAt, &last.events)
	})
	if err != nil {
		return last, fmt.Errorf("look: %w", err)
	}
	return last, nil
}

// count is how many rows a batch would find.
func (r *run) count(ctx context.Context, batch batch, cutOff time.Time) (rows int64, err error) {
	err = r.inTx(ctx, dueTimeout, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, byIndex); err != nil {
			return err //nolint:wrapcheck // said below
		}
		return tx.QueryRow(ctx, r.statement("count_"+batch.file), cutOff).Scan(&rows)
	})
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", batch.file, err)
	}
	return rows, nil
}
