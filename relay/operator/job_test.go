package operator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// filter is what a person would write.
func (e *env) filter(text string) operator.Filter {
	e.t.Helper()
	filter, err := operator.ParseFilter(text)
	if err != nil {
		e.t.Fatal(err)
	}
	return filter
}

// start starts a job.
func (e *env) start(a operator.Action, spec operator.JobSpec) operator.Job {
	e.t.Helper()
	job, err := e.operator.StartJob(e.t.Context(), a, spec, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	return job
}

// finish works on a job until it has ended or is paused.
func (e *env) finish(job operator.Job) operator.Job {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	job, err := e.operator.NewWorker("a test", nil).Do(ctx, job.ID, func(operator.Job) {})
	if err != nil {
		e.t.Fatal(err)
	}
	return job
}

func (e *env) wantJob(job operator.Job, want string) {
	e.t.Helper()
	if got := strings.TrimSpace(fmt.Sprintf("%s %d done %d passed %s", job.State, job.Done, job.Passed,
		job.Error)); got != want {
		e.t.Errorf("the job is %s, want %s", got, want)
	}
}

// failures are what the log has about the failures of a job.
func (e *env) failures(job operator.Job) string {
	e.t.Helper()
	return e.one(`SELECT coalesce(string_agg(actor || ': ' || reason, '; ' ORDER BY id), '') FROM {schema}.outbox_actions
		WHERE verb = 'fail' AND target = 'job ' || $1::text`, job.ID.String())
}

// dead writes dead events with their letters, those of an aggregate one behind the other.
func (e *env) dead(number, aggregates int) {
	e.t.Helper()
	e.exec(`WITH made AS (
			INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, attempt_count,
				state, last_error)
			SELECT g.id, 'placed', 'order', (i % $2)::text, json_build_object('eventId', g.id), 3, 5, 'broken'
			  FROM (SELECT i, {schema}.outbox_uuid7() AS id FROM generate_series(1, $1::integer) i OFFSET 0) g
			RETURNING *)
		INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
			aggregate_type, aggregate_id, topic, error_reason, payload_json)
		SELECT seq, id, created_at, 3, false, namespace, event_type, aggregate_type, aggregate_id, 'orders', 'rejected',
			payload_json FROM made`, number, aggregates)
}

// TestAJobDoesWhatItsFilterSays: each verb, to those events alone that meet the filter and are in a state for it, with
// a row of the log for each.
func TestAJobDoesWhatItsFilterSays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		verb   operator.Verb
		filter string
		want   string // which of the events below it changes, and into which state
	}{
		"redrive":             {operator.VerbRedrive, "", "1:retrying 2:retrying 3:retrying"},
		"redrive a type":      {operator.VerbRedrive, "type:shipped", "3:retrying"},
		"redrive an order":    {operator.VerbRedrive, "aggregate:order/a", "1:retrying"},
		"redrive blocking":    {operator.VerbRedrive, "state:blocking", "1:retrying"},
		"redrive a reason":    {operator.VerbRedrive, "reason:max_attempts", "1:retrying 2:retrying 3:retrying"},
		"redrive no reason":   {operator.VerbRedrive, "reason:rejected", ""},
		"redrive no topic":    {operator.VerbRedrive, "topic:orders", ""},
		"redrive an error":    {operator.VerbRedrive, "error:BROKEN created:<1h", "1:retrying 2:retrying 3:retrying"},
		"redrive what is old": {operator.VerbRedrive, "created:>1h", ""},
		"skip":                {operator.VerbSkip, "", "1:dead"},
		"discard":             {operator.VerbDiscard, "type:placed", "1:discarded 2:discarded"},
		"release":             {operator.VerbRelease, "", "4:retrying"},
		"redeliver":           {operator.VerbRedeliver, "", "5:copy 6:copy"},
		"redeliver an order":  {operator.VerbRedeliver, "aggregate:order/b type:shipped", "6:copy"},
		"reissue":             {operator.VerbReissue, "", "1:discarded+new 2:discarded+new 3:discarded+new"},
		"reissue published":   {operator.VerbReissue, "state:published", "5:new 6:new"},
		"reissue discarded":   {operator.VerbReissue, "state:discarded", "7:new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachServer(t, func(t *testing.T, e *env) {
				events := []outbox.ID{
					e.event("a", "placed", state.DeadBlocking), e.event("b", "placed", state.Dead),
					e.event("b", "shipped", state.Dead), e.event("c", "placed", state.Parked),
					e.event("a", "placed", state.Published), e.event("b", "shipped", state.Published),
					e.event("d", "placed", state.Discarded), e.event("d", "placed", state.Ready),
				}
				before := make([]string, len(events))
				for i, id := range events {
					before[i] = e.row(id)
				}
				spec := operator.JobSpec{Verb: test.verb, Filter: e.filter(test.filter)}
				plan, err := e.operator.PlanJob(t.Context(), spec, patience)
				if err != nil {
					t.Fatal(err)
				}
				a := action()
				job := e.start(a, spec)
				// Nobody sends the copies here.
				if test.verb == operator.VerbRedeliver {
					e.asSent()
				}
				e.exec("SELECT {schema}.outbox_wake()")
				job = e.finish(job)
				var got []string
				for i, id := range events {
					became := ""
					if row := e.row(id); row != before[i] {
						number, _, _ := strings.Cut(row, " ")
						became = state.State(number[0] - '0').String()
					}
					if e.one(`SELECT count(*)::text FROM {schema}.outbox_requests WHERE event_id = $1`, id.String()) == "1" {
						became += "copy"
					}
					if e.one(`SELECT count(*)::text FROM {schema}.outbox_events WHERE headers ->> 'reissue_of' = $1
						AND payload_json ->> 'eventId' = id::text AND id <> $1::uuid`, id.String()) == "1" {
						became = strings.TrimPrefix(became+"+new", "+")
					}
					if became != "" {
						got = append(got, fmt.Sprintf("%d:%s", i+1, became))
					}
					logged := e.one(`SELECT count(*)::text FROM {schema}.outbox_actions
						WHERE action_id = $1 AND event_id = $2 AND verb = $3 AND actor = 'ann' AND reason = $4`,
						a.ID.String(), id.String(), string(test.verb), a.Reason)
					if want := map[bool]string{true: "1", false: "0"}[became != ""]; logged != want {
						t.Errorf("event %d has %s rows of the log, want %s", i+1, logged, want)
					}
				}
				if text := strings.Join(got, " "); text != test.want {
					t.Errorf("it changed %s\nwant       %s", text, test.want)
				}
				e.wantJob(job, fmt.Sprintf("done %d done 0 passed", len(got)))
				if plan.Events != int64(len(got)) || !plan.Complete || len(plan.Sample) != min(len(got), 5) {
					t.Errorf("the plan has %+v, the job did %d", plan, len(got))
				}
			})
		})
	}
}

// asSent has every request of now and later be one that was delivered.
func (e *env) asSent() {
	e.exec(`CREATE FUNCTION {schema}.sent() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN NEW.delivered_at := clock_timestamp(); RETURN NEW; END'`)
	e.exec(`CREATE TRIGGER sent BEFORE INSERT ON {schema}.outbox_requests FOR EACH ROW EXECUTE FUNCTION {schema}.sent()`)
}

// TestAJobIsDoneOnce: whoever dies in the middle, and however often it is started.
func TestAJobIsDoneOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const events = 1700
		e.dead(events, 50)
		a := action()
		spec := operator.JobSpec{Verb: operator.VerbRedrive, Filter: e.filter("topic:orders created:<1h")}
		job := e.start(a, spec)
		// The first worker is gone after its first part.
		ctx, gone := context.WithCancel(t.Context())
		_, err := e.operator.NewWorker("gone", nil).Do(ctx, job.ID, func(j operator.Job) {
			if j.Done > 0 {
				gone()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("it ended with %v", err)
		}
		if again := e.start(a, spec); again.ID != job.ID || again.Done == 0 || again.Done >= events {
			t.Errorf("started again it is %+v", again)
		}
		if _, err := e.operator.StartJob(t.Context(), a, operator.JobSpec{
			Verb: operator.VerbRedrive, Filter: e.filter("topic:others"),
		}, 0); err == nil || !strings.Contains(err.Error(), "another decision needs another id") {
			t.Errorf("the id of another job: %v", err)
		}
		if _, err := e.operator.StartJob(t.Context(), a, operator.JobSpec{
			Verb: operator.VerbDiscard, Filter: spec.Filter,
		}, 0); err == nil || !strings.Contains(err.Error(), "another decision needs another id") {
			t.Errorf("the id of a job of another verb: %v", err)
		}
		if got := e.one(`SELECT worker_name || ' ' || (work_until > clock_timestamp()) FROM {schema}.outbox_jobs`); got !=
			"gone false" {
			t.Errorf("the job has %s", got)
		}
		job = e.finish(job)
		e.wantJob(job, fmt.Sprintf("done %d done 0 passed", events))
		e.wantJob(e.finish(e.start(a, spec)), fmt.Sprintf("done %d done 0 passed", events))
		if got := e.one(`SELECT count(*) || ' ' || count(DISTINCT event_id) || ' ' || min(verb) || ' ' || max(verb)
			FROM {schema}.outbox_actions WHERE action_id = $1 AND target IS NULL`, a.ID.String()); got !=
			fmt.Sprintf("%d %d redrive redrive", events, events) {
			t.Errorf("the log has %s", got)
		}
		// In the order of their numbers: the log was written so.
		if got := e.one(`SELECT count(*)::text FROM (SELECT part, lag(most) OVER (ORDER BY part) > least AS wrong FROM (
				SELECT x.xmin::text AS part, max(e.seq) AS most, min(e.seq) AS least
				  FROM {schema}.outbox_actions x JOIN {schema}.outbox_events e ON e.id = x.event_id GROUP BY 1) p) w
				 WHERE wrong`,
		); got != "0" {
			t.Errorf("%s parts begin before the part before has ended", got)
		}
	})
}

// TestAJobHasABound: it changes as many as it may, fails before it changes one more, and does not go on. Its error says
// how another job does the rest alone.
func TestAJobHasABound(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(30, 3)
		e.exec("UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
		last := e.one("SELECT (max(seq) - 1)::text FROM {schema}.outbox_events")
		tooMany := "failed 29 done 0 passed it may change 29 events and has changed 29, and there are more: what is above " +
			"number " + last + " is left. Another job with the same filter and --after-seq " + last +
			" changes that and nothing twice"
		spec := operator.JobSpec{Verb: operator.VerbReissue, Filter: e.filter("state:published"), Max: 29}
		job := e.finish(e.start(action(), spec))
		e.wantJob(job, tooMany)
		if got := e.failures(job); got != "a test: "+job.Error {
			t.Errorf("the log has %q", got)
		}
		if outcome, err := e.operator.ResumeJob(t.Context(), action(), job.ID); err != nil || outcome != operator.Done {
			t.Errorf("resume: %s, %v", outcome, err)
		}
		e.wantJob(e.finish(job), tooMany)
		spec.AfterSeq = job.Position
		plan, err := e.operator.PlanJob(t.Context(), spec, patience)
		if err != nil || plan.Events != 1 {
			t.Errorf("behind %d: %d events, %v", job.Position, plan.Events, err)
		}
		e.wantJob(e.finish(e.start(action(), plan.Spec)), "done 1 done 0 passed")
		if got := e.one(`SELECT count(DISTINCT headers ->> 'reissue_of') || ' of ' || count(*)
			FROM {schema}.outbox_events WHERE headers ->> 'reissue_of' IS NOT NULL`); got != "30 of 30" {
			t.Errorf("new events: %s", got)
		}
	})
}

// TestAJobIsAboutWhatWasPlanned: what was made or published since is not meant, however long somebody thinks about the
// plan, and whether its words come back as texts or not.
func TestAJobIsAboutWhatWasPlanned(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		var late []outbox.ID
		for range 5 {
			e.exec("UPDATE {schema}.outbox_events SET published_at = now() WHERE id = $1",
				e.event("1", "placed", state.Published).String())
			late = append(late, e.event("2", "placed", state.Ready))
		}
		spec := operator.JobSpec{Verb: operator.VerbReissue, Filter: e.filter("type:placed state:published")}
		plan, err := e.operator.PlanJob(t.Context(), spec, patience)
		if err != nil || plan.Events != 5 || plan.LastSeq == 0 {
			t.Fatalf("%+v, %v", plan, err)
		}
		for _, id := range append(late, e.event("3", "placed", state.Ready)) {
			e.becomes(id, state.Published)
			e.exec("UPDATE {schema}.outbox_events SET published_at = clock_timestamp() WHERE id = $1", id.String())
		}
		asked := operator.JobSpec{
			Verb: plan.Verb, Filter: e.filter(plan.Filter), LastSeq: plan.LastSeq, LastAt: plan.LastAt, Max: plan.Events,
		}
		a := action()
		job := e.start(a, asked)
		if job.LastSeq != plan.LastSeq || job.Filter != plan.Filter {
			t.Errorf("the job is about %s up to %d, the plan about %s up to %d", job.Filter, job.LastSeq, plan.Filter,
				plan.LastSeq)
		}
		e.wantJob(e.finish(job), "done 5 done 0 passed")
		for _, again := range []operator.JobSpec{asked, spec} { // as it was planned, and as it was asked for first
			if job := e.start(a, again); job.State != operator.JobDone {
				t.Errorf("sent again it is %s", job.State)
			}
		}
		dead := operator.JobSpec{Verb: operator.VerbDiscard, Max: 3}
		e.dead(3, 1)
		if plan, err = e.operator.PlanJob(t.Context(), dead, patience); err != nil || plan.Events != 3 {
			t.Fatalf("%+v, %v", plan, err)
		}
		e.dead(2, 1)
		e.wantJob(e.finish(e.start(action(), plan.Spec)), "done 3 done 0 passed")
	})
}

// TestAJobIsPausedAndCanceled: what is done stays, nothing else is done.
func TestAJobIsPausedAndCanceled(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(600, 3)
		job := e.start(action(), operator.JobSpec{Verb: operator.VerbRedrive, Rate: 1})
		change := func(do func(context.Context, operator.Action, outbox.ID) (operator.Outcome, error), a operator.Action,
			want operator.Outcome,
		) {
			t.Helper()
			if got, err := do(t.Context(), a, job.ID); err != nil || got != want {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
		}
		worker := e.operator.NewWorker("a test", nil)
		paused := action()
		got, err := worker.Do(t.Context(), job.ID, func(j operator.Job) {
			if j.Done == 1 && j.State == operator.JobRunning {
				change(e.operator.PauseJob, paused, operator.Done)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		e.wantJob(got, "paused 1 done 0 passed")
		change(e.operator.PauseJob, paused, operator.DoneBefore)
		change(e.operator.PauseJob, action(), operator.NotApplicable)
		e.wantJob(e.finish(job), "paused 1 done 0 passed")
		change(e.operator.ResumeJob, action(), operator.Done)
		change(e.operator.CancelJob, action(), operator.Done)
		e.wantJob(e.finish(job), "canceled 1 done 0 passed")
		change(e.operator.ResumeJob, action(), operator.NotApplicable)
		if log := e.one(`SELECT string_agg(verb || ' ' || coalesce(target, 'event'), ', ' ORDER BY id)
			FROM {schema}.outbox_actions`); log != fmt.Sprintf("redrive job: state:dead, redrive event, pause job %[1]s, "+
			"resume job %[1]s, cancel job %[1]s", job.ID) {
			t.Errorf("the log has %s", log)
		}
		job.ID = outbox.NewID()
		change(e.operator.CancelJob, action(), operator.NotFound)
		if _, err := e.operator.Job(t.Context(), job.ID); !errors.Is(err, operator.ErrNoJob) {
			t.Errorf("no job: %v", err)
		}
		jobs, err := e.operator.Jobs(t.Context(), true, nil, 10)
		if lately, err := e.operator.Jobs(t.Context(), false, nil, 10); err != nil || len(lately) != 1 {
			t.Errorf("of the last day are %+v, %v", lately, err)
		}
		e.exec("UPDATE {schema}.outbox_jobs SET ended_at = now() - interval '2 days'")
		if open, err := e.operator.Jobs(t.Context(), false, nil, 10); err != nil || len(open) != 0 {
			t.Errorf("open are %+v, %v", open, err)
		}
		e.exec("UPDATE {schema}.outbox_jobs SET state = 'failed'")
		if failed, err := e.operator.Jobs(t.Context(), false, nil, 10); err != nil || len(failed) != 1 {
			t.Errorf("failed in the last week are %+v, %v", failed, err)
		}
		if err != nil || len(jobs) != 1 {
			t.Errorf("jobs are %+v, %v", jobs, err)
		}
		if more, err := e.operator.Jobs(t.Context(), true, &jobs[0], 10); err != nil || len(more) != 0 {
			t.Errorf("behind the last one are %+v, %v", more, err)
		}
	})
}

// TestAReplayWaitsForItsOwnCopies: no more are asked for than the relays are given at a time, and the copies of one job
// that nobody sends do not hold up another.
func TestAReplayWaitsForItsOwnCopies(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(1700, 50)
		e.exec("UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
		first, second := e.start(action(), operator.JobSpec{Verb: operator.VerbRedeliver, Topic: "a"}),
			e.start(action(), operator.JobSpec{Verb: operator.VerbRedeliver, Topic: "b"})
		for _, job := range []operator.Job{first, second} {
			ctx, enough := context.WithCancel(t.Context())
			looks := 0
			stopped, err := e.operator.NewWorker("a test", nil).Do(ctx, job.ID, func(j operator.Job) {
				if j.Copies.Open > 0 {
					looks++
				}
				if looks == 5 {
					enough()
				}
			})
			if !errors.Is(err, context.Canceled) || stopped.Done != 1000 || stopped.State != operator.JobRunning {
				t.Errorf("%d copies are asked for, %s, %v", stopped.Done, stopped.State, err)
			}
		}
	})
}

// TestToWaitForCopiesWritesNothing: a part is done, and the end of the job once they are sent.
func TestToWaitForCopiesWritesNothing(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.event("1", "placed", state.Published)
		e.exec("CREATE SEQUENCE {schema}.steps")
		e.exec(`CREATE FUNCTION {schema}.step() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
			PERFORM nextval('{schema}.steps'); RETURN NEW; END $$`)
		e.exec(`CREATE TRIGGER step BEFORE UPDATE OF position ON {schema}.outbox_jobs
			FOR EACH ROW EXECUTE FUNCTION {schema}.step()`)
		steps := func() string { return e.one("SELECT last_value::text FROM {schema}.steps WHERE is_called") }
		job := e.start(action(), operator.JobSpec{Verb: operator.VerbRedeliver})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		looks := 0
		job, err := e.operator.NewWorker("a test", nil).Do(ctx, job.ID, func(j operator.Job) {
			if j.Copies.Open == 0 {
				return
			}
			if looks++; looks == 5 {
				if got := steps(); got != "1" {
					t.Errorf("while a copy is waited for there were %s steps", got)
				}
				e.exec("UPDATE {schema}.outbox_requests SET delivered_at = clock_timestamp()")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		e.wantJob(job, "done 1 done 0 passed")
		if got := steps(); got != "2" || looks < 5 {
			t.Errorf("there were %s steps and %d looks", got, looks)
		}
	})
}

// TestARateIsKept: whoever works on it, and however quickly.
func TestARateIsKept(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(30, 3)
		job := e.finish(e.start(action(), operator.JobSpec{Verb: operator.VerbRedrive, Rate: 20}))
		e.wantJob(job, "done 30 done 0 passed")
		if got := e.one(`SELECT count(*)::text FROM (
			SELECT acted_at - lag(acted_at, 6) OVER (ORDER BY id) AS apart FROM {schema}.outbox_actions WHERE target IS NULL) a
			WHERE apart < interval '200 milliseconds'`); got != "0" {
			t.Errorf("%s times there were more than 20 per second", got)
		}
	})
}

// TestWhatFollowsADiscardedEventGoes: also where a relay puts an event behind the block while the part runs, and where
// the worker dies before its second look.
func TestWhatFollowsADiscardedEventGoes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.event("a", "placed", state.DeadBlocking)
		first := e.event("a", "placed", state.Waiting)
		job := e.start(action(), operator.JobSpec{Verb: operator.VerbDiscard})
		late := outbox.ID{}
		got, err := e.operator.NewWorker("a test", nil).Do(t.Context(), job.ID, func(j operator.Job) {
			if j.Done == 1 && late == (outbox.ID{}) {
				late = e.event("a", "shipped", state.Waiting)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		e.wantJob(got, "done 1 done 0 passed")
		if rows := e.row(first) + ", " + e.row(late); rows != "1 attempts=3 due, 1 attempts=3 due" {
			t.Errorf("what followed is %s", rows)
		}
	})
}

// TestReissue: a new event with the old one's bytes and another id, at the tail, once; an edit has other data.
func TestReissue(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := outbox.NewID()
		payload := fmt.Sprintf(`{"version":3, "eventId" : "%s","occurredAt":"2026-01-02T03:04:05Z",`+
			`"actor":{"type":"user","id":"7"},"data":{"big":12345678901234567890.10,"eventId":"%[1]s","a":"b"}}`, id)
		e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, headers,
			state, published_at, tenant_id, dedupe_key) VALUES ($1::text::uuid, 'placed', 'order', '1', $2::text::json,
			'{"traceparent":"x"}', 6, now(), 't', 't/1')`, id.String(), payload)
		a := action()
		results, made, err := e.operator.Reissue(t.Context(), a, id)
		if err != nil || results[0].Outcome != operator.Done || results[0].Was != "published" {
			t.Fatalf("%+v, %v", results, err)
		}
		read := `SELECT payload_json || ' ' || (headers ->> 'traceparent') || ' ' || (headers ->> 'reissue_of') || ' '
			|| state || ' ' || tenant_id || ' ' || dedupe_key || ' '
			|| (seq > (SELECT seq FROM {schema}.outbox_events WHERE id = $2))
			FROM {schema}.outbox_events WHERE id = $1`
		want := strings.Replace(payload, id.String(), made[0].String(), 1) + " x " + id.String() + " 0 t t/1 true"
		if got := e.one(read, made[0].String(), id.String()); got != want {
			t.Errorf("the new event is\n%s, want\n%s", got, want)
		}
		if again, same, err := e.operator.Reissue(t.Context(), a, id); err != nil || same[0] != made[0] ||
			again[0].Outcome != operator.DoneBefore {
			t.Errorf("again: %+v, %v, %v", again, same, err)
		}
		dead := e.event("2", "placed", state.DeadBlocking)
		waiting := e.event("2", "placed", state.Waiting)
		if _, _, err := e.operator.Edit(t.Context(), action(), dead, []byte(`[1]`)); err == nil ||
			!strings.Contains(err.Error(), "JSON object is required") {
			t.Errorf("data that are no object: %v", err)
		}
		result, edited, err := e.operator.Edit(t.Context(), action(), dead, []byte(`{"fixed":1.0}`))
		if err != nil || result.Outcome != operator.Done || result.Was != "dead and blocking" {
			t.Fatalf("%+v, %v", result, err)
		}
		if got := e.one(`SELECT (payload_json -> 'data')::text || ' ' || (payload_json ->> 'eventId' = id::text)
			|| (headers ->> 'reissue_of') FROM {schema}.outbox_events WHERE id = $1`, edited.String()); got !=
			`{"fixed":1.0} true`+dead.String() {
			t.Errorf("the edited event has %s", got)
		}
		if rows := e.row(dead) + ", " + e.row(waiting); rows != "7 attempts=3, 1 attempts=3 due" {
			t.Errorf("the old one and its follower are %s", rows)
		}
		if got := e.actions(dead); got != "reissue by ann: the topic is back, of its dead letter" {
			t.Errorf("the log has %s", got)
		}
		ready := e.event("3", "placed", state.Ready)
		results, made, err = e.operator.Reissue(t.Context(), action(), ready, outbox.NewID())
		if err != nil || results[0].Outcome != operator.NotApplicable || results[1].Outcome != operator.NotFound ||
			made[0] != (outbox.ID{}) {
			t.Errorf("of one that is ready, and of none: %+v, %v", results, err)
		}
		if _, err := e.role.Exec(t.Context(), e.sql(`SELECT {schema}.outbox_act('ann', 'x', 'reissue', '{}')`)); err == nil ||
			!strings.Contains(err.Error(), "outbox_reissue does that") {
			t.Errorf("half a reissue: %v", err)
		}
	})
}

// TestAJobThatCannotGoOnSaysWhy: and can be resumed when it can.
func TestAJobThatCannotGoOnSaysWhy(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.event("1", "placed", state.Published)
		job := e.startBySQL("redeliver", "nonsense:7")
		job = e.finish(job)
		if job.State != operator.JobFailed || !strings.Contains(job.Error, "there is no field") {
			t.Errorf("it is %s: %s", job.State, job.Error)
		}
		if got := e.failures(job); got != "a test: "+job.Error {
			t.Errorf("the log has %q", got)
		}
	})
}

// TestWhatNoJobIs: each with what is wrong.
func TestWhatNoJobIs(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for want, spec := range map[string]operator.JobSpec{
			"there is no verb":           {Verb: "explode"},
			"that is a redeliver":        {Verb: operator.VerbRedrive, Topic: "x"},
			"must be above 0":            {Verb: operator.VerbRedrive, Max: -1},
			"needs no job":               {Verb: operator.VerbRedrive, Filter: operator.Filter{IDs: []outbox.ID{{}}}},
			"only dead events have one":  {Verb: operator.VerbRedeliver, Filter: e.filter("reason:rejected")},
			"not from what is published": {Verb: operator.VerbRedrive, Filter: e.filter("state:published")},
			"not of both":                {Verb: operator.VerbReissue, Filter: e.filter("state:published,dead")},
			"the rate is -1":             {Verb: operator.VerbRedrive, Rate: -1},
			"the rate is NaN":            {Verb: operator.VerbRedrive, Rate: math.NaN()},
		} {
			if _, err := e.operator.StartJob(t.Context(), action(), spec, 0); err == nil ||
				!strings.Contains(err.Error(), want) || !errors.Is(err, operator.ErrNotUnderstood) {
				t.Errorf("%s: %v", want, err)
			}
			if _, err := e.operator.PlanJob(t.Context(), spec, time.Minute); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("the plan: %s: %v", want, err)
			}
		}
		silent := action()
		silent.Reason = " "
		if _, err := e.operator.StartJob(t.Context(), silent, operator.JobSpec{Verb: operator.VerbRedrive}, 0); err == nil ||
			!strings.Contains(err.Error(), "a reason is required") {
			t.Errorf("without a reason: %v", err)
		}
	})
}
