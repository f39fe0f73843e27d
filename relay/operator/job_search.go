package operator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// How the events of a job are found: all by their numbers, those with a dead letter, or those that are held.
const (
	fromAll  = "numbers"
	fromDead = "numbers of dead"
	fromHeld = "numbers of held"
	// fromAggregate is for the events of one.
	fromAggregate = "numbers of an aggregate"
)

// How much a job looks at in one go: so many numbers, or of dead and held events so many rows. It is what keeps a
// search short; how much that is depends on the table, on the filter and on how many events a part has. The least is
// less than a part of a slow job has: what is looked at behind a part is looked at again by the next one.
const (
	leastWidth = 50
	firstWidth = 2_000
	mostWidth  = 10_000_000
	usualLook  = 100 * time.Millisecond
)

// jobSearch finds the events of a job by their numbers, from the least on.
type jobSearch struct {
	operator *Operator
	spec     JobSpec
	width    int64
	by       string // how the events are found; empty: not known yet
	// ready is the part behind a position, found while it was not due; nil: none is.
	ready *jobPart
}

// jobPart is the events behind a position, up to which number there are no others, and when that was so.
type jobPart struct {
	above, upto int64
	events      []outbox.ID
	at          time.Time
}

func newJobSearch(o *Operator, spec JobSpec) *jobSearch {
	return &jobSearch{operator: o, spec: spec, width: firstWidth}
}

// choose finds the index that answers: those of one aggregate have one. A large aggregate is looked for among all,
// since each look reads all that it has.
func (s *jobSearch) choose(ctx context.Context, l *looking) error {
	s.by = s.spec.source()
	if s.by != fromAll || s.spec.Filter.AggregateID == "" {
		return nil
	}
	var events int
	if err := l.QueryRow(ctx, l.sql("aggregate_count"), s.spec.Filter.AggregateType, s.spec.Filter.AggregateID,
		mostGathered).Scan(&events); err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	if events < mostGathered {
		s.by = fromAggregate
	}
	return nil
}

// end is up to which number one look goes. Letters and held events are counted: they may lie anywhere among the
// numbers, all together or far apart.
func (s *jobSearch) end(ctx context.Context, l *looking, above, last int64) (upto int64, err error) {
	var statement string
	switch s.by {
	case fromAggregate:
		return last, nil
	case fromDead:
		statement = "job_end_dead"
	case fromHeld:
		statement = "job_end_held"
	default:
		return min(last, above+s.width), nil
	}
	err = l.QueryRow(ctx, l.sql(statement), above, last, s.width).Scan(&upto)
	if errors.Is(err, pgx.ErrNoRows) {
		return last, nil
	}
	return upto, err //nolint:wrapcheck // look says what it was
}

// look runs a statement over the next numbers: those above one and no further than another. It tells how far it looked.
func (s *jobSearch) look(ctx context.Context, above, last int64, limit int,
	read func(l *looking, statement string, args []any) error,
) (upto int64, err error) {
	begin := time.Now()
	err = s.operator.look(ctx, "job", func(l *looking) (err error) {
		if s.by == "" {
			if err := s.choose(ctx, l); err != nil {
				return err
			}
		}
		if upto, err = s.end(ctx, l, above, last); err != nil {
			return err
		}
		found := &search{
			looking: l, filter: s.spec.Filter, page: Page{Limit: limit}, by: s.by, above: above, upto: upto,
			lastAt: s.spec.LastAt,
		}
		err = read(l, found.statement(), found.args)
		if sqlstate.PermissionDenied(err) && found.readsPayloads() {
			return ErrPayloads
		}
		return err
	})
	switch took := time.Since(begin); {
	case took > 2*usualLook || err != nil: // it may have taken too long
		s.width = max(s.width/2, leastWidth)
	case took < usualLook/2:
		s.width = min(s.width*2, mostWidth)
	}
	return upto, err
}

// next finds events above a number, at most so many, and tells up to which number there is none but these.
func (s *jobSearch) next(ctx context.Context, above, last int64, limit int) (
	events []outbox.ID, upto int64, err error,
) {
	var found []Event
	width := s.width
	upto, err = s.look(ctx, above, last, limit, func(l *looking, statement string, args []any) error {
		rows, err := l.Query(ctx, statement, args...)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		found, _, err = readEvents(rows)
		return err
	})
	for _, event := range found {
		events = append(events, event.ID)
	}
	if len(found) == limit && limit > 0 {
		looked := upto - above
		upto = found[len(found)-1].Seq
		// All that was looked at behind these is looked at once more by the next part.
		needed := float64(width) * float64(upto-above) / float64(max(looked, 1))
		s.width = min(s.width, max(int64(2*needed), leastWidth))
	}
	return events, upto, err
}

// A JobPlan is what a job would do now.
type JobPlan struct {
	// Spec is the job as it would be written down.
	Spec JobSpec `json:"-"`
	// Filter is its filter, in which nothing depends on the time any more, LastSeq the number of the last event that it
	// means, and LastAt the time of the plan. Events that are made, die or are published later are not counted, and not
	// meant.
	Filter  string    `json:"filter"`
	LastSeq int64     `json:"lastSeq"`
	LastAt  time.Time `json:"lastAt"`
	Verb    Verb      `json:"verb"`
	// Events is how many it would meet, Types how many of each type.
	Events int64            `json:"events"`
	Types  map[string]int64 `json:"types"`
	// Erased is how many of the Events are erased, so that the job passes them by: a redrive, redeliver or
	// reissue has nothing left to send.
	Erased int64 `json:"erased,omitempty"`
	// Oldest and Newest are when the first and the last of them were made; nil where there is none.
	Oldest *time.Time `json:"oldest,omitempty"`
	Newest *time.Time `json:"newest,omitempty"`
	// Sample is the first few.
	Sample []Event `json:"sample"`
	// Complete tells that all were counted. Otherwise it took too long, and there are about Estimate.
	Complete bool  `json:"complete"`
	Estimate int64 `json:"estimate"`
}

const (
	sampleSize = 5
	// countLimit is how many events one statement of a plan counts. The numbers that it looks at bound it as well.
	countLimit = 1 << 30
)

// PlanJob counts what a job would change now, and changes nothing. The grants of the viewer role are enough. It counts
// for no longer than so; then the number is an estimate.
func (o *Operator) PlanJob(ctx context.Context, spec JobSpec, longest time.Duration) (JobPlan, error) {
	plan := JobPlan{Types: map[string]int64{}, Verb: spec.Verb, Sample: []Event{}}
	if err := spec.check(); err != nil {
		return plan, notUnderstoodError{err}
	}
	var last int64
	err := o.look(ctx, "plan", func(l *looking) (err error) {
		if plan.Spec, err = spec.resolved(ctx, l); err != nil {
			return err
		}
		return l.QueryRow(ctx, "SELECT last_value FROM "+l.table("outbox_events_seq_seq")).
			Scan(&last)
	})
	if err != nil {
		return plan, err
	}
	if given := plan.Spec.LastSeq; given > 0 {
		last = min(given, last)
	}
	plan.Filter, plan.LastSeq, plan.Spec.LastSeq = plan.Spec.Filter.String(), last, last
	plan.LastAt = plan.Spec.LastAt
	search := newJobSearch(o, plan.Spec)
	first := min(plan.Spec.AfterSeq, last)
	at := first
	for begin := time.Now(); at < last && time.Since(begin) < longest; {
		if at, err = search.count(ctx, at, last, &plan); err != nil {
			return plan, err
		}
	}
	plan.Complete, plan.Estimate = at >= last, plan.Events
	if !plan.Complete && at > first {
		plan.Estimate = int64(float64(plan.Events) * float64(last-first) / float64(at-first))
	}
	return plan, nil
}

// count adds the next numbers to the plan.
func (s *jobSearch) count(ctx context.Context, above, last int64, plan *JobPlan) (upto int64, err error) {
	upto, err = s.look(ctx, above, last, countLimit, func(l *looking, statement string, args []any) error {
		erased := "0::bigint"
		if plan.Verb.needsPayload() {
			erased = "count(*) FILTER (WHERE f.erased)"
		}
		rows, err := l.Query(ctx, l.sql("job_count", "{found}", statement, "{erased}", erased), args...)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		var eventType string
		var events, gone int64
		var oldest, newest time.Time
		_, err = pgx.ForEachRow(rows, []any{&eventType, &events, &oldest, &newest, &gone}, func() error {
			plan.add(eventType, events, oldest, newest)
			plan.Erased += gone
			return nil
		})
		return err //nolint:wrapcheck // look says what it was
	})
	if err != nil || len(plan.Sample) >= sampleSize || plan.Events == 0 {
		return upto, err
	}
	_, err = s.look(ctx, above, upto, sampleSize, func(l *looking, statement string, args []any) error {
		rows, err := l.Query(ctx, statement, args...)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		found, _, err := readEvents(rows)
		plan.Sample = slices.Concat(plan.Sample, found)
		plan.Sample = plan.Sample[:min(len(plan.Sample), sampleSize)]
		return err
	})
	return upto, err
}

func (p *JobPlan) add(eventType string, events int64, oldest, newest time.Time) {
	p.Events += events
	p.Types[eventType] += events
	oldest, newest = oldest.UTC(), newest.UTC()
	if p.Oldest == nil || oldest.Before(*p.Oldest) {
		p.Oldest = &oldest
	}
	if p.Newest == nil || newest.After(*p.Newest) {
		p.Newest = &newest
	}
}
