package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// deaths are where the workers of a job die, one after the other: the second time that they come there.
var deaths = []string{"job.before_part:2", "job.before_commit:2", "job.after_part:2"}

// JobReport is what came of one job.
type JobReport struct {
	Name string
	// Job is how it ended, Planned what the plan had counted, Points where its workers died, and Kills how often.
	Job     operator.Job
	Planned int64
	Points  []string
	Kills   int
	// Logged is how many rows of the log the action has, Twice how many events have more than one, Unlogged how many
	// changed events have none.
	Logged, Twice, Unlogged int
	// Fastest is the most rows of the log within a second.
	Fastest int
	// Again is what has changed when it was started once more with the same id.
	Again []string
	// Took is how long it was at work.
	Took    time.Duration
	Latency Stretch
}

// newAction is a decision of a person.
func newAction(why string) operator.Action {
	return operator.Action{ID: outbox.NewID(), Actor: "proof-ops", Reason: why}
}

// job has a job started by a terminal that goes away, and worked on by processes that are killed, until it is done.
func (r *run) job(ctx context.Context, name string, what order) (*JobReport, error) {
	report := &JobReport{Name: name}
	began := time.Now()
	if err := r.startJob(ctx, what, report); err != nil {
		return nil, err
	}
	r.sayf("%s: %d events are planned", name, report.Planned)
	for _, point := range deaths {
		worker, err := r.start(task{Name: "worker"}, point)
		if err != nil {
			return nil, err
		}
		if err := r.await(ctx, what.Action.ID, "the worker dies at "+point, func(operator.Job) bool {
			return !worker.Alive()
		}); err != nil {
			return nil, err
		}
		if err := r.killed(ctx, worker, report); err != nil {
			return nil, err
		}
	}
	// While somebody works on it, the same is asked for once more: by a terminal that did not hear the answer.
	worker, err := r.start(task{Name: "worker"}, "")
	if err != nil {
		return nil, err
	}
	if err := r.startJob(ctx, what, nil); err != nil {
		return nil, err
	}
	if err := r.await(ctx, what.Action.ID, "two thirds are done", func(j operator.Job) bool {
		return 3*j.Done > 2*report.Planned || j.Ended()
	}); err != nil {
		return nil, err
	}
	worker.Kill()
	if err := r.killed(ctx, worker, report); err != nil {
		return nil, err
	}
	return report, r.finish(ctx, what, report, began)
}

// finish has two workers at once finish a job, of which one at a time may have it.
func (r *run) finish(ctx context.Context, what order, report *JobReport, began time.Time) (err error) {
	var pair [2]*child
	for i := range pair {
		if pair[i], err = r.start(task{Name: "worker"}, ""); err != nil {
			return err
		}
	}
	if err := r.await(ctx, what.Action.ID, "it ends", operator.Job.Ended); err != nil {
		return err
	}
	report.Took = time.Since(began)
	if err := r.again(ctx, what, report); err != nil {
		return err
	}
	for _, worker := range pair {
		worker.Kill()
	}
	report.Job, err = r.db.operator().Job(ctx, what.Action.ID)
	if err != nil {
		return err
	}
	r.sayf("%s: %s, %d done in %s", report.Name, report.Job.State, report.Job.Done, report.Took.Round(time.Second))
	return r.audit(ctx, what, report)
}

// startJob has a terminal start a job, and go away as soon as it has.
func (r *run) startJob(ctx context.Context, what order, report *JobReport) error {
	terminal, err := r.start(task{Name: "terminal", Start: &what}, "")
	if err != nil {
		return err
	}
	defer terminal.Kill()
	for deadline := time.Now().Add(r.plan.Patience); ; {
		if text, found := strings.CutPrefix(terminal.Said(), startedWord+" "); found && strings.HasSuffix(text, "\n") {
			if report == nil {
				return nil
			}
			_, err := fmt.Sscan(text, &report.Planned)
			return err
		}
		if !terminal.Alive() || time.Now().After(deadline) {
			return fmt.Errorf("ops: the job was not started: %s", terminal.LastWords())
		}
		if err := wait.For(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// killed notes the death of a worker, and ends its lease where nobody waits for that.
func (r *run) killed(ctx context.Context, worker *child, report *JobReport) error {
	point, err := worker.died()
	if err != nil {
		return err
	}
	report.Kills++
	if point != "" {
		report.Points = append(report.Points, point)
	}
	r.sayf("%s: %s was killed at %s", report.Name, worker.name, max(point, "any moment"))
	if !r.plan.EndLeases {
		return nil
	}
	_, err = r.db.pool.Exec(ctx,
		"UPDATE public.outbox_jobs SET work_until = clock_timestamp() WHERE work_until IS NOT NULL")
	if err != nil {
		return fmt.Errorf("ops: end a lease: %w", err)
	}
	return nil
}

// await waits until a job is so, or nothing has moved for too long.
func (r *run) await(ctx context.Context, id outbox.ID, what string, so func(operator.Job) bool) error {
	var last operator.Job
	for moved := time.Now(); ; {
		job, err := r.db.operator().Job(ctx, id)
		if err != nil {
			return err
		}
		if so(job) {
			return nil
		}
		if job.Position != last.Position || job.Copies != last.Copies {
			last, moved = job, time.Now()
		}
		if time.Since(moved) > r.plan.Patience {
			return fmt.Errorf("ops: %s did not happen, and the job stands still: %+v", what, job)
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// facts are what a job that is started twice must not change.
var facts = map[string]string{
	"the job": "SELECT j::text FROM public.outbox_jobs j WHERE j.id = $1::text::uuid",
	"its log": "SELECT count(*) || ' ' || coalesce(max(a.id), 0) FROM public.outbox_actions a " +
		"WHERE a.action_id = $1::text::uuid",
	"its copies": "SELECT count(*) || ' ' || coalesce(max(q.id), 0) FROM public.outbox_requests q " +
		"WHERE q.action_id = $1::text::uuid",
	"all logs":           "SELECT count(*)::text FROM public.outbox_actions WHERE $1::text IS NOT NULL",
	"the number of jobs": "SELECT count(*)::text FROM public.outbox_jobs WHERE $1::text IS NOT NULL",
	"orders that are not published": "SELECT count(*)::text FROM public.outbox_events " +
		"WHERE aggregate_type = 'order' AND state <> 6 AND $1::text IS NOT NULL",
}

// again starts a job that is done once more, with workers there, and compares.
func (r *run) again(ctx context.Context, what order, report *JobReport) error {
	if err := r.settled(ctx); err != nil {
		return err
	}
	before, arrived := map[string]string{}, r.broker.count(ordersTopic, 0)+r.broker.count(what.Topic, 0)
	for name, query := range facts {
		text, err := r.db.one(ctx, query, what.Action.ID.String())
		if err != nil {
			return err
		}
		before[name] = text
	}
	if err := r.startJob(ctx, what, nil); err != nil {
		return err
	}
	if err := wait.For(ctx, r.plan.Linger); err != nil {
		return err
	}
	for name, query := range facts {
		after, err := r.db.one(ctx, query, what.Action.ID.String())
		if err != nil {
			return err
		}
		if after != before[name] {
			report.Again = append(report.Again, fmt.Sprintf("%s: %s, and before %s", name, after, before[name]))
		}
	}
	if now := r.broker.count(ordersTopic, 0) + r.broker.count(what.Topic, 0); now != arrived {
		report.Again = append(report.Again, fmt.Sprintf("%d messages came again", now-arrived))
	}
	slices.Sort(report.Again)
	return nil
}
