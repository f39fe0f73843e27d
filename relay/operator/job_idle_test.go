package operator_test

import (
	"strings"
	"testing"

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
