package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// How a worker works.
const (
	// mostOfPart is how many events one part has. Locks are held for that long, and live events wait behind them.
	mostOfPart = 500
	// partsPerSecond is into how many parts a rate is cut. The events of a part go out at once, and live events wait
	// behind them.
	partsPerSecond = 10
	// jobLease is for how long nobody else takes a job. A worker that dies is missed for that long.
	jobLease = 30 * time.Second
	// lookForGrant is how often a worker looks whether it may work, lookForJobs how often when there is nothing to do, and
	// waitForCopies how often when copies are sent.
	lookForGrant  = time.Minute
	lookForJobs   = 2 * time.Second
	waitForCopies = 250 * time.Millisecond
	// waitAfterError is how long a worker waits for a database that does not answer.
	waitAfterError = 5 * time.Second
	// mostOpenCopies is how many copies may be asked for and not sent yet. Relays that come back find no more than that,
	// or what is due within two seconds at the job's rate.
	mostOpenCopies = 1_000
	// longestBusy is for how long a server may be too busy for a part, before somebody is told.
	longestBusy = time.Minute
	// longestSearch is for how long a worker looks for events before it notes how far it is.
	longestSearch = time.Second
)

// A Worker works on jobs, each until it is done, together with all other workers of the outbox: one job has one worker
// at a time. The grants of the operator role are enough.
type Worker struct {
	operator *Operator
	id       outbox.ID
	name     string
	log      *slog.Logger
	searches map[outbox.ID]*jobSearch
	taken    map[outbox.ID]bool
	left     map[outbox.ID]time.Time // to others, since this role lacks a right for it
}

// NewWorker makes a worker; its name is shown to people, the host's for none. A nil log is none.
func (o *Operator) NewWorker(name string, log *slog.Logger) *Worker {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if name == "" {
		name, _ = os.Hostname()
	}
	return &Worker{
		operator: o, id: outbox.NewID(), name: name, log: log, searches: map[outbox.ID]*jobSearch{},
		taken: map[outbox.ID]bool{}, left: map[outbox.ID]time.Time{},
	}
}

// MayWork tells whether the role may work on jobs.
func (o *Operator) MayWork(ctx context.Context) (may bool, err error) {
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT coalesce(has_function_privilege(to_regproc($1::text)::oid, 'EXECUTE'), false)",
			o.function("outbox_work_job")).Scan(&may)
	})
	if err != nil {
		return false, fmt.Errorf("operator: may this role work on jobs: %w", err)
	}
	return may, nil
}

// Run works on all jobs until the context ends, whatever fails meanwhile: then it tries again. A role without the grant
// does nothing, and looks about once per minute whether it has got it.
func (w *Worker) Run(ctx context.Context) {
	defer w.leave(ctx)
	may, told, failing := false, false, false
	for ctx.Err() == nil {
		var pause time.Duration
		var err error
		if !may {
			may, err = w.operator.MayWork(ctx)
		}
		if may {
			pause, err = w.round(ctx)
		} else if pause = lookForGrant; err != nil {
			pause = waitAfterError
		} else if !told {
			told = true
			w.log.DebugContext(ctx, "jobs are left to others: this role has no operator's grant")
		}
		if err != nil && ctx.Err() == nil {
			if !failing { // the relay says often enough that the database is not there
				w.log.WarnContext(ctx, "jobs are not worked on for now", "error", err)
			}
			pause = max(pause, waitForCopies) // of those that do go on
		}
		failing = err != nil
		if wait.For(ctx, pause) != nil {
			return
		}
	}
}

// round does a part of each job that is due, and tells when to look again.
func (w *Worker) round(ctx context.Context) (pause time.Duration, err error) {
	var jobs []Job
	err = w.operator.look(ctx, "jobs", func(l *looking) (err error) {
		jobs, err = l.jobs(ctx, nil, false, true, nil, 1000)
		return err
	})
	pause = lookForJobs
	for _, job := range jobs {
		next, failed := w.part(ctx, job)
		if failed != nil { // the others go on
			next, err = lookForJobs, errors.Join(err, failed)
		}
		pause = min(pause, next)
	}
	return pause, err
}

// Do works on one job until it has ended or is paused, and tells how it goes. Another worker that has the job is waited
// for, and so is, for a minute, a server that is busy: that a lock is not had in time fails one part, and not the job.
// After another error the job stays as it is, for whoever goes on with it.
func (w *Worker) Do(ctx context.Context, id outbox.ID, progress func(Job)) (job Job, err error) {
	defer w.leave(ctx)
	for worked := time.Now(); ; {
		if job, err = w.operator.Job(ctx, id); err != nil {
			return job, err
		}
		progress(job)
		if job.State != JobRunning {
			return job, nil
		}
		pause, err := w.part(ctx, job)
		switch {
		case err == nil:
			worked = time.Now()
		case !passing(err) || time.Since(worked) > longestBusy:
			return job, err
		default:
			pause = lookForJobs
		}
		if err := wait.For(ctx, pause); err != nil {
			return job, err
		}
	}
}

// part does the next part of a job, and tells when the one behind it is due.
func (w *Worker) part(ctx context.Context, job Job) (next time.Duration, err error) {
	if job.wait > 0 && job.worker == w.id && job.wait < jobLease/2 {
		return job.wait, nil
	}
	if since, left := w.left[job.ID]; left && time.Since(since) < lookForGrant {
		return lookForJobs, nil
	}
	if mine, err := w.has(ctx, job); err != nil || !mine || job.wait > 0 {
		return min(max(job.wait, waitForCopies), lookForJobs), err
	}
	if job.Verb == VerbRedeliver {
		if enough, err := w.enoughCopies(ctx, job); err != nil || enough {
			return waitForCopies, err
		}
	}
	search, err := w.search(job)
	if err != nil {
		return 0, w.fail(ctx, job, err)
	}
	events, upto, err := w.find(ctx, search, job)
	if err != nil {
		return 0, w.fail(ctx, job, err)
	}
	err = w.work(ctx, &job, search.spec.source() == fromDead, upto, events)
	if err != nil {
		return 0, w.fail(ctx, job, err)
	}
	switch {
	case job.State != JobRunning:
		delete(w.searches, job.ID)
		delete(w.taken, job.ID)
		w.log.InfoContext(ctx, "a job has ended", "job", job.ID, "verb", job.Verb, "state", job.State, "done", job.Done)
	case len(events) == 0 && upto >= job.LastSeq:
		return waitForCopies, nil
	case job.Rate > 0:
		due := time.Now().Add(time.Duration(float64(len(events)) / job.Rate * float64(time.Second)))
		w.prepare(ctx, search, job, upto)
		return max(time.Until(due), 0), nil
	}
	return 0, nil
}

// prepare finds the next part while it is not due, so that the search does not slow down a rate. What cannot be found
// now is looked for when it is due.
func (w *Worker) prepare(ctx context.Context, search *jobSearch, job Job, position int64) {
	if job.Rate < partsPerSecond { // until then there may be others
		return
	}
	job.Position = position
	began := time.Now()
	if events, upto, err := w.find(ctx, search, job); err == nil {
		search.ready = &jobPart{above: position, upto: upto, events: events, at: began}
	}
}

// has tells whether the job is this worker's, and makes it so for a while.
func (w *Worker) has(ctx context.Context, job Job) (mine bool, err error) {
	if job.worker == w.id && job.lease > jobLease/2 {
		return true, nil
	}
	return w.take(ctx, job.ID, jobLease)
}

// take makes the job this worker's for a while.
func (w *Worker) take(ctx context.Context, job outbox.ID, lease time.Duration) (mine bool, err error) {
	err = w.operator.inTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT "+w.operator.function("outbox_take_job")+
			"($1::text::uuid, $2::text::uuid, $3::text, $4::double precision)",
			job.String(), w.id.String(), w.name, lease.Seconds()).Scan(&mine)
	})
	if err != nil {
		return false, fmt.Errorf("operator: take a job: %w", w.operator.needsOperator(err))
	}
	if mine {
		w.taken[job] = true
	}
	return mine, nil
}

// leave gives up what it has, so that nobody waits for the end of a lease. Failing, they do wait.
func (w *Worker) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTimeout)
	defer cancel()
	for job := range w.taken {
		_, _ = w.take(ctx, job, 0)
	}
}

// enoughCopies tells whether the relays have enough of this job to send for now. At the end of its numbers that is a
// single copy: nothing is left but to wait until all are sent, and a step would write the row each time.
func (w *Worker) enoughCopies(ctx context.Context, job Job) (enough bool, err error) {
	most := max(mostOpenCopies, int(min(2*job.Rate, math.MaxInt32)))
	if job.Position >= job.LastSeq {
		most = 1
	}
	err = w.operator.look(ctx, "copies", func(l *looking) error {
		var open int
		err := l.QueryRow(ctx, l.sql("copies_open"), job.ID.String(), most).Scan(&open)
		enough = open >= most
		return err //nolint:wrapcheck // look says what it was
	})
	return enough, err
}

// search is what finds the events of a job. It is kept: it learns how much to look at.
func (w *Worker) search(job Job) (*jobSearch, error) {
	if known := w.searches[job.ID]; known != nil {
		return known, nil
	}
	filter, err := parseFilter(job.Filter, longestStored)
	if err != nil {
		return nil, notUnderstoodError{err}
	}
	spec := JobSpec{
		Verb: job.Verb, Filter: filter.settled(job.LastAt), Topic: job.Topic, Rate: job.Rate, Max: job.Max,
		LastAt: job.LastAt,
	}
	if err := spec.check(); err != nil {
		return nil, notUnderstoodError{err}
	}
	if spec.byTopic() { // read by each worker anew, it would mean other events in the middle of the job
		return nil, notUnderstoodError{fmt.Errorf("topic: which types go to %q may change while the job runs, so it must "+
			"name them: start another with type: in its filter, or with outboxctl, which writes them down", filter.Topic)}
	}
	w.searches[job.ID] = newJobSearch(w.operator, spec)
	return w.searches[job.ID], nil
}

// find looks for the events of the next part, and tells up to which number there are no others.
func (w *Worker) find(ctx context.Context, search *jobSearch, job Job) (events []outbox.ID, upto int64, err error) {
	if ready := search.ready; ready != nil {
		search.ready = nil
		if ready.above == job.Position && time.Since(ready.at) < longestSearch {
			return ready.events, ready.upto, nil
		}
	}
	most := mostOfPart
	if job.Rate > 0 {
		most = int(min(max(1, job.Rate/partsPerSecond), mostOfPart))
	}
	// What it may change is used up. Then one more is enough to see that there are too many.
	most = int(min(int64(most), max(job.Max-job.Done, 1)))
	upto = job.Position
	for begin := time.Now(); upto < job.LastSeq && len(events) == 0 && time.Since(begin) < longestSearch; {
		if events, upto, err = search.next(ctx, upto, job.LastSeq, most); err != nil {
			return nil, 0, err
		}
	}
	return events, upto, nil
}

// work does a part: the events, the log and how far the job is, in one transaction.
func (w *Worker) work(ctx context.Context, job *Job, deadOnly bool, upto int64, events []outbox.ID) error {
	crash.Point("job.before_part")
	err := w.operator.inTx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "SELECT done, passed, state FROM "+w.operator.function("outbox_work_job")+
			"($1::text::uuid, $2::text::uuid, $3::bigint, $4::bigint, $5::text[]::uuid[], $6::boolean)",
			job.ID.String(), w.id.String(), job.Position, upto, texts(events), deadOnly).
			Scan(&job.Done, &job.Passed, &job.State)
		crash.Point("job.before_commit")
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // somebody paused it, or has it now: the next look says
		}
		return err //nolint:wrapcheck // named below
	})
	if err != nil {
		return fmt.Errorf("operator: a part of job %s: %w", job.ID, w.operator.needsOperator(err))
	}
	crash.Point("job.after_part")
	if len(events) > 0 {
		w.operator.ring(ctx)
	}
	return nil
}

// fail ends a job whose error will be there the next time as well. What passes by itself is only returned, and a job
// for which this role lacks a right is given back: another may have it.
func (w *Worker) fail(ctx context.Context, job Job, cause error) error {
	if errors.Is(cause, ErrPayloads) || sqlstate.PermissionDenied(cause) {
		delete(w.searches, job.ID)
		w.left[job.ID] = time.Now()
		if _, err := w.take(ctx, job.ID, 0); err == nil { // failing, they wait for the end of its lease
			delete(w.taken, job.ID)
		}
		return fmt.Errorf("operator: job %s is left to others: %w", job.ID, cause)
	}
	if !lasting(cause) || ctx.Err() != nil {
		return cause
	}
	delete(w.searches, job.ID)
	w.log.WarnContext(ctx, "a job has failed", "job", job.ID, "error", cause)
	err := w.operator.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT "+w.operator.function("outbox_fail_job")+"($1::text::uuid, $2::text::uuid, $3::text)",
			job.ID.String(), w.id.String(), cause.Error())
		return err //nolint:wrapcheck // named below
	})
	if err != nil {
		return fmt.Errorf("operator: job %s failed (%w), and that could not be noted: %w", job.ID, cause, err)
	}
	return nil
}

// lasting tells whether an error will be there the next time, for whoever works on the job: the filter is not
// understood, or the statement itself is wrong. A connection, a lock, a server that goes down are not like that.
func lasting(err error) bool {
	if errors.Is(err, ErrNotUnderstood) {
		return true
	}
	code := sqlstate.Of(err)
	if code == "" || code == sqlstate.QueryCanceled || code == sqlstate.InsufficientPrivilege {
		return false
	}
	switch code[:2] {
	case "22", "23", "42", "P0", "2F", "0A":
		return true
	}
	return false
}

// passing tells whether an error is one of a server that has too much to do, or of those who wait for each other: it
// ends by itself, and the connection is there.
func passing(err error) bool {
	switch code := sqlstate.Of(err); code {
	case sqlstate.LockNotAvailable, sqlstate.QueryCanceled, sqlstate.DeadlockDetected:
		return true
	default:
		return strings.HasPrefix(code, "40") || strings.HasPrefix(code, "53")
	}
}
