package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// idleAfter is when a job that nobody works on is told of. A relay whose role has just got the grant knows it within a
// minute.
const idleAfter = 2 * lookForGrant

// IdleJobs reads the jobs that are running and that nobody has worked on for some minutes, the newest first. The grants
// of the viewer role are enough.
func (o *Operator) IdleJobs(ctx context.Context) (jobs []Job, err error) {
	err = o.look(ctx, "jobs", func(l *looking) (err error) {
		jobs, err = l.idleJobs(ctx)
		return err
	})
	return jobs, err
}

func (l *looking) idleJobs(ctx context.Context) (idle []Job, err error) {
	running, err := l.jobs(ctx, nil, false, true, nil, 1000)
	for _, job := range running {
		if job.Worker == "" && l.now.Sub(job.ChangedAt) > idleAfter {
			idle = append(idle, job)
		}
	}
	return idle, err
}

// idleJobsIfSeen does without where the role may not ask: it was granted its part before there were jobs.
func (l *looking) idleJobsIfSeen(ctx context.Context) ([]Job, error) {
	nested, err := l.Begin(ctx) // an error of it must not end the whole transaction
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	defer func() { _ = nested.Rollback(context.WithoutCancel(ctx)) }()
	jobs, err := (&looking{Tx: nested, schema: l.schema, window: l.window, now: l.now}).idleJobs(ctx)
	if sqlstate.PermissionDenied(err) {
		return nil, nil
	}
	return jobs, err
}

// reportJobs tells of jobs that nobody works on.
func (s *Status) reportJobs(idle []Job) {
	if len(idle) == 0 {
		return
	}
	longest := time.Duration(0)
	for _, job := range idle {
		longest = max(longest, s.At.Sub(job.ChangedAt))
	}
	s.because(Degraded, "jobs_idle", fmt.Sprintf("%s running, and nobody has worked on %s for %s",
		counted(int64(len(idle)), "job", "is", "are"), map[bool]string{true: "it", false: "them"}[len(idle) == 1],
		span.Of(longest)), "give the role of outbox-publisher the grant with outboxctl grant operator ROLE, or work on it "+
		"here: outboxctl jobs work "+idle[0].ID.String())
}
