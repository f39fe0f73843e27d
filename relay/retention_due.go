package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// RetentionDue is how much of one kind a run would delete.
type RetentionDue struct {
	Kind   string // published, discarded, dead or dedupe
	CutOff time.Time
	// Rows is how many are older than the cut-off. Of dead letters and discarded events these are those that would
	// go; of the other two it is the most, because a few of them may have to stay: events that shall be delivered
	// again, and keys of events that are still there.
	Rows int64
	// Refusal says why a run would delete nothing of them; empty: it would.
	Refusal string
}

// Due counts what [Retention.Once] would delete now, and changes nothing. Kinds that are kept for ever are not in the
// answer. It reads indexes, and gives up on a kind after a minute.
func (r *Retention) Due(ctx context.Context) ([]RetentionDue, error) {
	var all []RetentionDue
	var problems []error
	var events *time.Time // the cut-off that events would have by the time the keys' turn comes
	for _, kind := range r.kinds {
		if kind.window < 0 {
			continue
		}
		run := retentionRun{Retention: r, kind: kind, worker: outbox.NewID().String()}
		due, err := run.dueNow(ctx, &events)
		all = append(all, due...)
		if err != nil {
			problems = append(problems, fmt.Errorf("relay: retention of %s: %w", kind.name, withGrant(err)))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return all, errors.Join(problems...)
}

// dueNow counts one kind. The cut-off of events is passed on to those that follow them.
func (r *retentionRun) dueNow(ctx context.Context, events **time.Time) (all []RetentionDue, err error) {
	last, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	if *events != nil {
		last.events = *events
	}
	cutOff := last.now.Add(-r.kind.window)
	refusal, err := r.implausible(ctx, last, cutOff)
	if err != nil {
		return nil, err
	}
	if r.kind.name == "published" && refusal == "" {
		*events = &cutOff
	}
	for _, batch := range r.kind.batches {
		due := RetentionDue{Kind: batch.file, CutOff: cutOff, Refusal: refusal}
		if due.Rows, err = r.count(ctx, batch, r.kind.reach(cutOff, last.events)); err != nil {
			return all, err
		}
		all = append(all, due)
	}
	return all, nil
}

// look reads what the database knows of the last run, and takes nothing.
func (r *retentionRun) look(ctx context.Context) (last retentionMemory, err error) {
	err = r.inTx(ctx, retentionTimeout, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, r.statement("look"), r.kind.name).Scan(&last.now, &last.cutOff, &last.ranAt, &last.events)
	})
	if err != nil {
		return last, fmt.Errorf("look: %w", err)
	}
	return last, nil
}

// count is how many rows a batch would find.
func (r *retentionRun) count(ctx context.Context, batch retentionBatch, cutOff time.Time) (rows int64, err error) {
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
