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
	// Rows is how many would go. Of dedupe keys it is the most: those of events that are still there stay.
	Rows int64
	// Estimated: there are too many events to look at each. Rows was scaled up from 100,000 numbers, spread over all.
	Estimated bool
	// Halted says why a run would delete nothing of them; empty: it would.
	Halted string
}

// Due counts what [Runner.Once] would delete now, and changes nothing. Kinds that are kept forever are not in the
// answer. It reads by indexes, and gives up on a kind after a minute.
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
	found, err := r.kind.count(r, ctx, r.kind.reach(cutOff, last.events))
	if err != nil {
		return nil, err
	}
	for i, part := range r.kind.parts {
		all = append(all, Due{
			Kind: part.name, CutOff: cutOff, Halted: reason, Rows: found.rows[i], Estimated: found.estimated,
		})
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

// counted is what a count found.
type counted struct {
	rows      []int64 // that would go, by the parts of the kind
	staying   int64
	estimated bool
}

func (c counted) total() (rows int64) {
	for _, n := range c.rows {
		rows += n
	}
	return rows
}

// byIndex: an index has all that is counted; the table, which may be a thousand times as large, is not read through.
const byIndex = "SET LOCAL enable_seqscan = off"

// count runs a statement that counts.
func (r *run) count(ctx context.Context, do func(pgx.Tx) error) error {
	err := r.inTx(ctx, dueTimeout, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, byIndex); err != nil {
			return err //nolint:wrapcheck // said below
		}
		return do(tx)
	})
	if err != nil {
		return fmt.Errorf("count what would go: %w", err)
	}
	return nil
}

// countAll counts each row that is older.
func (r *run) countAll(ctx context.Context, cutOff time.Time) (counted, error) {
	var rows int64
	err := r.count(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, r.statement("count_"+r.kind.name), cutOff).Scan(&rows)
	})
	return counted{rows: []int64{rows}}, err
}

// dueKeys counts keys that would go, and of the others as many.
func (r *run) dueKeys(ctx context.Context, cutOff time.Time) (counted, error) {
	var due, staying int64
	err := r.count(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, r.statement("due_dedupe"), cutOff, fewRows).Scan(&due, &staying)
	})
	return counted{rows: []int64{due}, staying: staying}, err
}

// The sample of events: so many places, and so many numbers in each. With events in fewer places than enough, most
// numbers are nobody's: then it tells too little, and each event is looked at.
const (
	samplePlaces  = 100
	sampleNumbers = 1_000
	sampleEnough  = 25
	everyNumber   = 1 << 62
)

// dueEvents counts events that would go, and settled ones that would stay. It looks at each, or at a sample where there
// are many: nothing else is bounded while no index knows when they were published.
func (r *run) dueEvents(ctx context.Context, cutOff time.Time) (all counted, err error) {
	err = r.count(ctx, func(tx pgx.Tx) error {
		for _, places := range [][2]int64{{samplePlaces, sampleNumbers}, {1, everyNumber}} {
			var numbers, looked, found, published, discarded, staying int64
			if err := tx.QueryRow(ctx, r.statement("due_events"), cutOff, places[0], places[1]).Scan(&numbers, &looked,
				&found, &published, &discarded, &staying); err != nil {
				return err //nolint:wrapcheck // said by count
			}
			scale := float64(numbers) / float64(max(looked, 1))
			all = counted{staying: int64(scale * float64(staying)), estimated: looked < numbers}
			for _, rows := range []int64{published, discarded} {
				all.rows = append(all.rows, int64(scale*float64(rows)))
			}
			if !all.estimated || found >= sampleEnough {
				return nil
			}
		}
		return nil
	})
	return all, err
}
