package operator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestStatusTellsOfIdleJobs: not at once, since a relay may come, and not while somebody works on it.
func TestStatusTellsOfIdleJobs(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		told := func(when string, want bool) {
			t.Helper()
			status, err := e.operator.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, reason := range status.Reasons {
				if reason.Code == "jobs_idle" {
					got = reason.Text + ": " + reason.Do
				}
			}
			if strings.HasPrefix(got, "1 job is running") != want {
				t.Errorf("%s: it says %q", when, got)
			}
		}
		told("without a job", false)
		e.start(action(), operator.JobSpec{Verb: operator.VerbRedrive})
		told("just started", false)
		e.exec("UPDATE {schema}.outbox_jobs SET changed_at = now() - interval '1 hour'")
		told("an hour later", true)
		e.exec(`UPDATE {schema}.outbox_jobs
			SET worker = gen_random_uuid(), worker_name = 'a', work_until = now() + interval '1 hour'`)
		told("while somebody has it", false)
		e.exec("UPDATE {schema}.outbox_jobs SET worker = NULL, work_until = NULL, state = 'paused'")
		told("paused", false)
	})
}

// TestAJobThatNobodyMayWorkOnIsIdle: each worker takes it, may not read what it asks for, and gives it back.
func TestAJobThatNobodyMayWorkOnIsIdle(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.event("1", "placed", state.Published)
		job, err := operator.New(e.admin, e.schema).StartJob(t.Context(), action(), operator.JobSpec{
			Verb: operator.VerbRedeliver, Filter: e.filter("data.n:7"),
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		e.exec("UPDATE {schema}.outbox_jobs SET changed_at = now() - interval '1 hour'")
		for range 3 {
			if _, err := e.operator.NewWorker("without", nil).Do(t.Context(), job.ID, func(operator.Job) {}); !errors.Is(err,
				operator.ErrPayloads) {
				t.Fatalf("without the right: %v", err)
			}
			if idle, err := e.operator.IdleJobs(t.Context()); err != nil || len(idle) != 1 || idle[0].ID != job.ID {
				t.Errorf("%d jobs are idle, %v", len(idle), err)
			}
		}
		e.exec("GRANT SELECT (payload_json) ON {schema}.outbox_events TO operator_" + e.schema)
		e.finish(job)
		if idle, err := e.operator.IdleJobs(t.Context()); err != nil || len(idle) != 0 {
			t.Errorf("%d jobs are idle once it is done, %v", len(idle), err)
		}
	})
}
