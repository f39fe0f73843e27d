package operator

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
)

// SetWindow has searches look at fewer events, so that a test needs no 50,000.
func (o *Operator) SetWindow(events int) { o.window = events }

// PlanOf is the plan of the look for a filter.
func (o *Operator) PlanOf(ctx context.Context, filter Filter) (plan string, err error) {
	err = o.look(ctx, "plan", func(l *looking) error {
		s, err := newSearch(ctx, l, filter, Page{})
		if err != nil {
			return err
		}
		if s.inOrder() {
			if _, err := l.Exec(ctx, l.sql("look_in_order")); err != nil {
				return err
			}
		}
		rows, err := l.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, COSTS OFF) "+s.statement(),
			append([]any{pgx.QueryExecModeExec}, s.args...)...)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	return plan, err
}

// PlanOfTraffic is the plan of the look at minutes, PlanOfSeries that of the look at each of them.
func (o *Operator) PlanOfTraffic(ctx context.Context, lastMinutes int) (plan string, err error) {
	return o.planOf(ctx, "traffic", lastMinutes, mostTopics)
}

func (o *Operator) PlanOfSeries(ctx context.Context, lastMinutes int, topic string) (plan string, err error) {
	return o.planOf(ctx, "series", lastMinutes, topic)
}

// PlanOfNeighbors is the plan of the look for the events beside one.
func (o *Operator) PlanOfNeighbors(ctx context.Context, event outbox.ID) (plan string, err error) {
	return o.planOf(ctx, "neighbors", event.String(), mostGathered)
}

func (o *Operator) planOf(ctx context.Context, statement string, args ...any) (plan string, err error) {
	err = o.look(ctx, "plan", func(l *looking) error {
		rows, err := l.Query(ctx, "EXPLAIN (COSTS OFF) "+l.sql(statement), append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	return plan, err
}

// Snapshots are all of a server that may be many others' as well.
func (o *Operator) Snapshots(ctx context.Context) ([]Snapshot, error) {
	var found Database
	err := o.look(ctx, "snapshots", func(l *looking) error { return o.snapshots(ctx, l, 100_000, &found) })
	return found.Snapshots, err
}

// LooksOfJob finds the events of so many parts of a job, and tells how many rows were looked at for them.
func (o *Operator) LooksOfJob(ctx context.Context, spec JobSpec, last int64, part, parts int) (
	looked, found int, err error,
) {
	if err := o.look(ctx, "job", func(l *looking) (err error) {
		spec, err = spec.resolved(ctx, l)
		return err
	}); err != nil {
		return 0, 0, err
	}
	search, at := newJobSearch(o, spec), int64(0)
	for range parts {
		var rows int
		_, err := search.look(ctx, at, last, 1<<30, func(l *looking, statement string, args []any) error {
			return l.QueryRow(ctx, "SELECT count(*) FROM ("+statement+") f", args...).Scan(&rows)
		})
		if err != nil {
			return 0, 0, err
		}
		events, upto, err := search.next(ctx, at, last, part)
		if err != nil {
			return 0, 0, err
		}
		looked, found, at = looked+rows, found+len(events), upto
	}
	return looked, found, nil
}

// CausesOnAStandby are the codes of what keeps an event that is ready on a standby, with so many relays alive.
func CausesOnAStandby(alive int) (codes []CauseCode) {
	f := &facts{there: true, alive: make([]aliveRelay, alive), identity: identity{standby: true}}
	f.event.State = state.Ready.String()
	for _, cause := range f.fleet() {
		codes = append(codes, cause.Code)
	}
	return codes
}

// Since is how far back the next look of a tail goes.
func (t *Tail) Since() time.Time { return t.filter.since }
