package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/idtime"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// A Verb is what a job does to events.
type Verb string

// The verbs. Redrive, skip and discard are of dead events, release of parked ones, redeliver of published ones; reissue
// is of dead ones or, where the filter says so, of published or discarded ones.
const (
	VerbRedrive   Verb = "redrive"
	VerbSkip      Verb = "skip"
	VerbRelease   Verb = "release"
	VerbDiscard   Verb = "discard"
	VerbRedeliver Verb = "redeliver"
	VerbReissue   Verb = "reissue"
)

// states are what the verb starts from.
func (v Verb) states() []state.State {
	switch v {
	case VerbRedrive, VerbDiscard:
		return []state.State{state.DeadBlocking, state.Dead}
	case VerbSkip:
		return []state.State{state.DeadBlocking}
	case VerbRelease:
		return []state.State{state.Parked}
	case VerbRedeliver:
		return []state.State{state.Published}
	case VerbReissue:
		return []state.State{state.DeadBlocking, state.Dead, state.Published, state.Discarded}
	}
	return nil
}

// needsPayload tells whether the verb is about what an event says: nothing of that is left of an erased one.
func (v Verb) needsPayload() bool { return v == VerbRedrive || v == VerbRedeliver || v == VerbReissue }

// DefaultMaxEvents is how many events a job may change unless somebody says more.
const DefaultMaxEvents = 10_000

// A JobSpec is what a job shall do: a verb, to all events that meet a filter.
type JobSpec struct {
	Verb Verb
	// Filter says which events. Its topic is, of dead events, the one that the dead letter names; of others, where the
	// types go now.
	Filter Filter
	// Topic is where the copies of a redelivery go. Empty: where the events' types go.
	Topic string
	// Rate is how many events per second. Zero: as fast as it goes.
	Rate float64
	// Max is how many events the job may change: it fails before it changes one more. Zero: DefaultMaxEvents.
	Max int64
	// LastSeq is the number of the last event that is meant, as a plan tells it: what came since is not. Zero: the last
	// that there is. AfterSeq is a number up to which no event is meant: where a job has stopped that had reached its
	// Max. Zero: none is.
	LastSeq, AfterSeq int64
	// LastAt is a moment as a plan tells it: what died or was published later is not meant, and relative times of the
	// filter are those before it. Zero, or one that is still to come: now.
	LastAt time.Time
}

// check says all that is wrong with it.
func (s JobSpec) check() error {
	problems := []error{s.Filter.check(), Redelivery{Topic: s.Topic}.check()}
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.Verb.states() == nil {
		bad("there is no verb %.40q", s.Verb)
	}
	if s.Topic != "" && s.Verb != VerbRedeliver {
		bad("only copies can go to another topic: that is a redeliver")
	}
	if s.Rate != 0 && !(s.Rate >= MinRate && s.Rate <= MaxRate) { // also of what is no number
		bad("the rate is %v: it must be from %v to %v, or 0 for none", s.Rate, MinRate, MaxRate)
	}
	if s.LastSeq < 0 || s.AfterSeq < 0 {
		bad("the numbers of events begin at 1, and it is about those from %d to %d", s.AfterSeq+1, s.LastSeq)
	}
	if s.Max < 0 {
		bad("the most events are %d: it must be above 0", s.Max)
	}
	if len(s.Filter.IDs) > 0 {
		bad("the filter names ids: what is named by its ids needs no job")
	}
	if s.Filter.Reason != "" && s.source() != fromDead {
		bad("reason: only dead events have one")
	}
	for _, word := range s.Filter.States {
		if !slices.ContainsFunc(s.Verb.states(), func(is state.State) bool { return is.String() == word }) {
			bad("state: %s starts from what is %s, not from what is %s", s.Verb, s.stateWords(), word)
		}
	}
	if s.Verb == VerbReissue && s.source() == fromDead && slices.ContainsFunc(s.Filter.States, closed) {
		bad("state: a reissue is of what is dead, or of what is published or discarded, not of both")
	}
	return errors.Join(problems...)
}

func closed(word string) bool {
	return word == state.Published.String() || word == state.Discarded.String()
}

func (s JobSpec) stateWords() string {
	var words []string
	for _, is := range s.Verb.states() {
		words = append(words, is.String())
	}
	return strings.Join(words, " or ")
}

// source is which table the events are found by.
func (s JobSpec) source() string {
	switch {
	case s.Verb == VerbRelease:
		return fromHeld
	case s.Verb == VerbRedeliver:
		return fromAll
	case s.Verb == VerbReissue && len(s.Filter.States) > 0 && !slices.ContainsFunc(s.Filter.States,
		func(word string) bool { return !closed(word) }):
		return fromAll
	}
	return fromDead
}

// byTopic tells whether it means what goes to a topic now, which only relays know. A dead letter names its own.
func (s JobSpec) byTopic() bool { return s.Filter.Topic != "" && s.source() != fromDead }

// resolved is the job as it is written down: it means the same events whenever it is read.
func (s JobSpec) resolved(ctx context.Context, l *looking) (JobSpec, error) {
	if s.Max == 0 {
		s.Max = DefaultMaxEvents
	}
	if s.LastAt.IsZero() || s.LastAt.After(l.now) {
		s.LastAt = l.now
	}
	s.LastAt = s.LastAt.UTC()
	s.Filter = s.Filter.settled(s.LastAt)
	if s.byTopic() {
		narrowed := &search{looking: l, filter: s.Filter}
		if err := narrowed.typesOfTopic(ctx); err != nil {
			return s, notUnderstoodError{err}
		}
		if slices.Equal(narrowed.filter.Types, noTypes) { // no filter says that in words: without types it would mean all
			return s, notUnderstoodError{fmt.Errorf("topic: none of the types %s goes to %q now: leave one of them out",
				strings.Join(s.Filter.Types, ", "), s.Filter.Topic)}
		}
		if len(narrowed.filter.Types) > mostValues {
			return s, notUnderstoodError{fmt.Errorf("topic: %d types go there, the limit of a job is %d: name some",
				len(narrowed.filter.Types), mostValues)}
		}
		s.Filter.Types, s.Filter.Topic = narrowed.filter.Types, ""
	}
	if len(s.Filter.States) == 0 {
		for _, is := range s.Verb.states() {
			if s.source() != fromDead || is != state.Published && is != state.Discarded {
				s.Filter.States = append(s.Filter.States, is.String())
			}
		}
	}
	return s, nil
}

// A JobState is how a job stands.
type JobState string

// The states of a job. Done, canceled and failed are its ends; a failed one can be resumed.
const (
	JobRunning  JobState = "running"
	JobPaused   JobState = "paused"
	JobDone     JobState = "done"
	JobCanceled JobState = "canceled"
	JobFailed   JobState = "failed"
)

// A Job is what is done to many events in parts, in the order of their numbers.
type Job struct {
	// ID is the action's: the rows of outbox_actions have it.
	ID     outbox.ID `json:"id"`
	Verb   Verb      `json:"verb"`
	Filter string    `json:"filter"`
	Topic  string    `json:"topic,omitempty"`
	// Rate is how many events per second, zero for no limit; Max how many at the most.
	Rate float64 `json:"rate,omitempty"`
	Max  int64   `json:"max"`
	// Expected is how many the plan counted.
	Expected    int64     `json:"expected"`
	Actor       string    `json:"actor"`
	Reason      string    `json:"reason"`
	SessionRole string    `json:"sessionRole"`
	CreatedAt   time.Time `json:"createdAt"`
	// LastSeq is the number of the last event that it looks at, Position how far it is. What died or was published after
	// LastAt it passes over.
	LastSeq  int64     `json:"lastSeq"`
	LastAt   time.Time `json:"lastAt"`
	Position int64     `json:"position"`
	State    JobState  `json:"state"`
	// Done is how many events it has changed, Passed how many were in no state for it any more.
	Done   int64 `json:"done"`
	Passed int64 `json:"passed"`
	// Worker is who works on it; empty: nobody.
	Worker    string     `json:"worker,omitempty"`
	Error     string     `json:"error,omitempty"`
	ChangedAt time.Time  `json:"changedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	// Copies is how the copies of a redelivery fare; zero of other verbs, and where jobs are listed.
	Copies Copies `json:"copies,omitzero"`

	wait   time.Duration // until its next part is due
	worker outbox.ID
	lease  time.Duration // for which nobody else takes it
}

// Ended tells whether nobody works on it any more.
func (j Job) Ended() bool { return j.EndedAt != nil }

// ErrNoJob says that there is none of this id.
var ErrNoJob = errors.New("there is no such job")

// StartJob writes a job down, for whoever works on jobs: [Worker] does. Sent again with the same action and the same
// spec it changes nothing. The Spec of a plan starts a job about the events that were counted, which are expected so
// many; so does one that was made of the plan's Filter, LastSeq and LastAt. A role that may not read payloads starts
// none that asks for what is in them: the error is [ErrPayloads].
func (o *Operator) StartJob(ctx context.Context, action Action, spec JobSpec, expected int64) (Job, error) {
	err := errors.Join(action.check(0), spec.check())
	if strings.TrimSpace(action.Reason) == "" {
		err = errors.Join(err, errors.New("a reason is required"))
	}
	if err != nil {
		return Job{}, fmt.Errorf("operator: start: %w", notUnderstoodError{err})
	}
	if before, err := o.Job(ctx, action.ID); err == nil {
		spec = spec.since(before)
	}
	err = o.look(ctx, "start", func(l *looking) (err error) {
		spec, err = spec.resolved(ctx, l)
		return err
	})
	if err != nil {
		return Job{}, err
	}
	filter, err := spec.stored()
	if err != nil {
		return Job{}, fmt.Errorf("operator: start: %w", err)
	}
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT "+o.function("outbox_start_job")+"($1::text, $2::text, $3::text, $4::text, "+
			"$5::bigint, $6::bigint, nullif($7::text, ''), nullif($8::double precision, 0), $9::text::uuid, "+
			"nullif($10::bigint, 0), $11::bigint, $12::timestamptz)", action.Actor, action.Reason, string(spec.Verb), filter,
			spec.Max, expected, spec.Topic, spec.Rate, action.ID.String(), spec.LastSeq, spec.AfterSeq, spec.LastAt)
		if denied := (*pgconn.PgError)(nil); errors.As(err, &denied) && sqlstate.PermissionDenied(err) &&
			denied.ColumnName != "" { // of a column, and not of the function
			return ErrPayloads
		}
		return err //nolint:wrapcheck // named below
	})
	if err != nil {
		return Job{}, fmt.Errorf("operator: start: %w", o.needsOperator(err))
	}
	o.ring(ctx)
	return o.Job(ctx, action.ID)
}

// longestStored is how long the filter of a job may be: the topic that somebody named may have become a list of types.
const longestStored = 65_536

// stored is the text of the filter as it is written down. It must mean the same when it is read.
func (s JobSpec) stored() (string, error) {
	text := s.Filter.String()
	again, err := parseFilter(text, longestStored)
	if err == nil && !reflect.DeepEqual(again, s.Filter) {
		err = errors.New("it would mean something else")
	}
	if err != nil {
		return "", notUnderstoodError{fmt.Errorf("the filter cannot be written down as %.200s: %w", text, err)}
	}
	return text, nil
}

// since is the same, of the moment at which a job was started: "the last hour" is another one when it is sent again. A
// bound that nobody names is what it was.
func (s JobSpec) since(job Job) JobSpec {
	s.LastAt = job.LastAt
	if s.Max == 0 {
		s.Max = job.Max
	}
	return s
}

// function is the name of a function, with its schema.
func (o *Operator) function(name string) string { return pgx.Identifier{o.schema, name}.Sanitize() }

func (o *Operator) needsOperator(err error) error {
	if sqlstate.PermissionDenied(err) {
		return fmt.Errorf("%w; run `outboxctl grant operator <role>`", err)
	}
	return err
}

// PauseJob has nobody work on a job until it is resumed. Copies that are asked for already go on.
func (o *Operator) PauseJob(ctx context.Context, action Action, job outbox.ID) (Outcome, error) {
	return o.changeJob(ctx, "pause", action, job)
}

// ResumeJob lets a job go on that is paused or has failed.
func (o *Operator) ResumeJob(ctx context.Context, action Action, job outbox.ID) (Outcome, error) {
	return o.changeJob(ctx, "resume", action, job)
}

// CancelJob ends a job. What it has done stays. Of a redelivery, [Operator.Cancel] ends the copies that are not sent
// yet.
func (o *Operator) CancelJob(ctx context.Context, action Action, job outbox.ID) (Outcome, error) {
	return o.changeJob(ctx, "cancel", action, job)
}

func (o *Operator) changeJob(ctx context.Context, verb string, action Action, job outbox.ID) (
	outcome Outcome, err error,
) {
	if err := action.check(0); err != nil {
		return "", fmt.Errorf("operator: %s: %w", verb, err)
	}
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT "+o.function("outbox_change_job")+"($1::text, $2::text, $3::text, $4::text::uuid, "+
			"$5::text::uuid)", action.Actor, action.Reason, verb, job.String(), action.ID.String()).
			Scan(&outcome)
	})
	if err != nil {
		return "", fmt.Errorf("operator: %s: %w", verb, o.needsOperator(err))
	}
	return outcome, nil
}

// Job reads one job; [ErrNoJob] where there is none.
func (o *Operator) Job(ctx context.Context, id outbox.ID) (job Job, err error) {
	err = o.look(ctx, "job", func(l *looking) error {
		jobs, err := l.jobs(ctx, &id, false, false, nil, 1)
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			return ErrNoJob
		}
		job = jobs[0]
		if job.Verb != VerbRedeliver {
			return nil
		}
		job.Copies, err = l.copiesOf(ctx, job)
		return err
	})
	return job, err
}

// Jobs reads jobs, the newest first, at most 1,000: all, or those that have not ended or did so lately, which is in the
// last day, and of those that failed in the last week. after is the last of the page before.
func (o *Operator) Jobs(ctx context.Context, all bool, after *Job, limit int) (jobs []Job, err error) {
	err = o.look(ctx, "jobs", func(l *looking) (err error) {
		jobs, err = l.jobs(ctx, nil, !all, false, after, min(max(limit, 1), 1000))
		return err
	})
	return jobs, err
}

func (l *looking) jobs(ctx context.Context, one *outbox.ID, current, workable bool, after *Job, limit int) (
	[]Job, error,
) {
	var id *string
	if one != nil {
		text := one.String()
		id = &text
	}
	end, last := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), idtime.Last
	if after != nil {
		end, last = after.CreatedAt, after.ID
	}
	rows, err := l.Query(ctx, l.sql("jobs"), id, current, workable, end, last.String(), limit)
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	jobs, err := pgx.CollectRows(rows, readJob)
	return jobs, err //nolint:wrapcheck // look says what it was
}

func readJob(row pgx.CollectableRow) (j Job, err error) {
	var id string
	var worker *string
	var wait, lease float64
	err = row.Scan(&id, &j.Verb, &j.Filter, &j.Topic, &j.Rate, &j.Max, &j.Expected, &j.Actor, &j.Reason, &j.SessionRole,
		&j.CreatedAt, &j.LastSeq, &j.LastAt, &j.State, &j.Position, &j.Done, &j.Passed, &wait, &worker, &j.Worker,
		&lease, &j.Error, &j.ChangedAt, &j.EndedAt)
	if err != nil {
		return j, err //nolint:wrapcheck // look says what it was
	}
	if j.ID, err = outbox.ParseID(id); err != nil {
		return j, err
	}
	if worker != nil {
		if j.worker, err = outbox.ParseID(*worker); err != nil {
			return j, err
		}
	}
	j.wait, j.lease = time.Duration(wait*float64(time.Second)), time.Duration(lease*float64(time.Second))
	if j.lease <= 0 || j.EndedAt != nil {
		j.Worker = ""
	}
	j.CreatedAt, j.ChangedAt, j.LastAt = j.CreatedAt.UTC(), j.ChangedAt.UTC(), j.LastAt.UTC()
	return j, nil
}
