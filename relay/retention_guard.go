package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// retentionMemory is what the database knows of the last run, and its clock.
type retentionMemory struct {
	now    time.Time
	cutOff *time.Time
	ranAt  *time.Time
	events *time.Time // the cut-off of events, whatever the kind; nil: none was ever deleted
}

// reach is up to when rows of the kind can go, given its cut-off. The key of an event goes after the event, and an
// event is never older when it is published than when it was created: so keys that came after the events' own cut-off
// have theirs still. To look at each of them would take hours where events are kept for years.
func (k retentionKind) reach(cutOff time.Time, events *time.Time) time.Time {
	switch {
	case !k.followsEvents || events != nil && events.After(cutOff):
		return cutOff
	case events == nil:
		return time.Unix(0, 0)
	default:
		return *events
	}
}

// implausible says why the cut-off cannot be right, or "". Steps of a few runs are left alone; a longer one must not
// take the greater part; one beyond MaxStep is never believed. Nobody can tell a wrong clock from a long silence by
// the database alone, so in doubt a person must.
func (r *retentionRun) implausible(ctx context.Context, last retentionMemory, cutOff time.Time) (string, error) {
	ordinary := ordinarySteps * r.config.Every
	if !cutOff.After(r.config.Confirmed) {
		return "", nil
	}
	if last.ranAt != nil && last.now.Before(last.ranAt.Add(-ordinary)) {
		return r.ask(cutOff, fmt.Sprintf("the last run was at %s, which is %s ahead: the clock went back",
			stamp(*last.ranAt), last.ranAt.Sub(last.now).Round(time.Second))), nil
	}
	if last.cutOff != nil {
		step := cutOff.Sub(*last.cutOff)
		if step > r.config.MaxStep {
			return r.ask(cutOff, fmt.Sprintf("the cut-off would move by %s, from %s to %s, and %s is the most: the clock went ahead, a window was shortened, or nothing ran for long",
				step.Round(time.Second), stamp(*last.cutOff), stamp(cutOff), r.config.MaxStep)), nil
		}
		if step <= ordinary {
			return "", nil
		}
	}
	if r.kind.due == "" {
		return "", nil
	}
	due, staying, err := r.due(ctx, r.kind.reach(cutOff, last.events))
	if err != nil {
		return "", err
	}
	if due >= fewRows && staying < due {
		return r.ask(cutOff, fmt.Sprintf("%d rows would go and %d stay: that is the greater part of them", due, staying)), nil
	}
	return "", nil
}

// ask adds what a person can do. A day more than the cut-off, because it moves on until the next run.
func (r *retentionRun) ask(cutOff time.Time, reason string) string {
	return fmt.Sprintf("%s. If this is right, set Confirmed to %s", reason, stamp(cutOff.Add(24*time.Hour)))
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// byIndex: an index has all that is counted; the table, which may be a thousand times as large, is not read through.
const byIndex = "SET LOCAL enable_seqscan = off"

// due counts what would go, and of the others as many.
func (r *retentionRun) due(ctx context.Context, cutOff time.Time) (due, staying int64, err error) {
	err = r.inTx(ctx, dueTimeout, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, byIndex); err != nil {
			return err //nolint:wrapcheck // said below
		}
		return tx.QueryRow(ctx, r.statement(r.kind.due), cutOff, fewRows).Scan(&due, &staying)
	})
	if sqlState(err) == queryCanceled {
		return 0, 0, fmt.Errorf("count what would go: %w; if the clock is right, set Confirmed to %s", err, stamp(cutOff.Add(24*time.Hour)))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("count what would go: %w", err)
	}
	return due, staying, nil
}
