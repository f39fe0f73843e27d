package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

func (e *env) wantCopies(id outbox.ID, want operator.Copies) {
	e.t.Helper()
	job, err := e.operator.Job(e.t.Context(), id)
	if err != nil || job.Copies != want {
		e.t.Errorf("the job has copies %+v, %v, want %+v", job.Copies, err, want)
	}
	if got, err := e.operator.Copies(e.t.Context(), id); err != nil || got != want {
		e.t.Errorf("copies are %+v, %v, want %+v", got, err, want)
	}
}

// TestTheCopiesOfAJobAreCounted: what is open, sent, failed and canceled, also after its end.
func TestTheCopiesOfAJobAreCounted(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(10, 3)
		e.exec("UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
		job := e.start(action(), operator.JobSpec{Verb: operator.VerbRedeliver})
		ctx, enough := context.WithCancel(t.Context())
		if _, err := e.operator.NewWorker("a test", nil).Do(ctx, job.ID, func(j operator.Job) {
			if j.Copies.Open == 10 {
				enough()
			}
		}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		e.exec(`UPDATE {schema}.outbox_requests SET delivered_at = CASE WHEN id % 2 = 0 THEN now() END,
			failed_at = CASE WHEN id % 2 = 1 THEN now() END WHERE id <= 4`)
		e.wantCopies(job.ID, operator.Copies{Open: 6, Sent: 2, Failed: 2})
		if _, err := e.operator.CancelJob(t.Context(), action(), job.ID); err != nil {
			t.Fatal(err)
		}
		e.wantCanceled(action(), job.ID, "6 canceled, 0 left")
		e.wantCopies(job.ID, operator.Copies{Sent: 2, Failed: 2, Canceled: 6})
		if _, err := e.operator.Copies(t.Context(), outbox.NewID()); !errors.Is(err, operator.ErrNoCopies) {
			t.Errorf("of no action: %v", err)
		}
	})
}

// TestManyCopiesAreNotTakenForSent: where there are more than are counted, that is said; at the end all are counted.
func TestManyCopiesAreNotTakenForSent(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(3, 3)
		e.exec("UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
		job := e.leave(e.start(action(), operator.JobSpec{Verb: operator.VerbRedeliver}))
		if _, err := e.operator.CancelJob(t.Context(), action(), job.ID); err != nil {
			t.Fatal(err)
		}
		e.exec(`WITH more AS (
			INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor, reason)
			SELECT $1::text::uuid, 'redeliver', gen_random_uuid(), 'ada', '' FROM generate_series(1, 10005) RETURNING event_id)
			INSERT INTO {schema}.outbox_requests (action_id, event_id, lane, event_seq, failed_at, canceled_at)
			SELECT $1::text::uuid, m.event_id, 0, n, CASE WHEN n % 5 > 0 THEN now() END, CASE WHEN n % 5 = 0 THEN now() END
			FROM (SELECT m.event_id, row_number() OVER () AS n FROM more m) m`, job.ID.String())
		found, err := e.operator.Job(t.Context(), job.ID)
		if err != nil || !found.Copies.AtLeast || found.Copies.Open != 3 || found.Copies.Sent != 0 {
			t.Errorf("while some are open: %+v, %v", found.Copies, err)
		}
		e.exec("UPDATE {schema}.outbox_requests SET delivered_at = now() WHERE failed_at IS NULL AND canceled_at IS NULL")
		e.wantCopies(job.ID, operator.Copies{Sent: 3, Failed: 8004, Canceled: 2001})
	})
}

// TestWhatCopiesWaitForIsTheirs: pauses and limits of other topics are none of their business.
func TestWhatCopiesWaitForIsTheirs(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(3, 3)
		e.exec("UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
		job := e.start(action(), operator.JobSpec{Verb: operator.VerbRedeliver, Topic: "mine"})
		e.leave(job)
		for _, topic := range []string{"mine", "others"} {
			if _, err := e.operator.Pause(t.Context(), action(), operator.TopicScope(topic)); err != nil {
				t.Fatal(err)
			}
		}
		reasons, err := e.operator.CopiesWait(t.Context(), job.ID)
		text := strings.Join(reasons, "\n")
		if err != nil || !strings.Contains(text, "mine") || strings.Contains(text, "others") ||
			!strings.Contains(text, "no relay is alive") {
			t.Errorf("they wait for %q, %v", reasons, err)
		}
	})
}

// TestAPlanCountsErasedEvents: those that the job will pass by, and of a verb that needs no payload none.
func TestAPlanCountsErasedEvents(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for _, aggregate := range []string{"1", "2", "3"} {
			e.withSecret(aggregate, state.Published)
		}
		gone := e.withSecret("4", state.Published)
		e.wantErased(action(), "done published", gone)
		spec := operator.JobSpec{Verb: operator.VerbReissue, Filter: e.filter("state:published")}
		plan, err := e.operator.PlanJob(t.Context(), spec, patience)
		if err != nil || plan.Events != 4 || plan.Erased != 1 {
			t.Errorf("planned: %+v, %v", plan, err)
		}
		e.wantJob(e.finish(e.start(action(), spec)), "done 3 done 1 passed")
		dead := e.withSecret("5", state.Dead)
		e.letter(dead, false)
		e.wantErased(action(), "done dead", dead)
		plan, err = e.operator.PlanJob(t.Context(), operator.JobSpec{Verb: operator.VerbDiscard}, patience)
		if err != nil || plan.Events != 1 || plan.Erased != 0 {
			t.Errorf("a discard: %+v, %v", plan, err)
		}
	})
}
