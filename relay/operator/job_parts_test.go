package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// leave works on a job until a part is done, and ends.
func (e *env) leave(job operator.Job) operator.Job {
	e.t.Helper()
	ctx, gone := context.WithCancel(e.t.Context())
	job, err := e.operator.NewWorker("gone", nil).Do(ctx, job.ID, func(j operator.Job) {
		if j.Done > 0 {
			gone()
		}
	})
	if !errors.Is(err, context.Canceled) {
		e.t.Fatalf("the job is %s with %d done: %v", job.State, job.Done, err)
	}
	return job
}

// TestAJobHasOneWorkerAtATime: nobody goes on while the lease of another runs, whether that one lives or not.
func TestAJobHasOneWorkerAtATime(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(1200, 3)
		job := e.leave(e.start(action(), operator.JobSpec{Verb: operator.VerbRedrive}))
		// As if it had died: one that ends gives the job back.
		e.exec("UPDATE {schema}.outbox_jobs SET work_until = clock_timestamp() + interval '1 hour'")
		ctx, enough := context.WithCancel(t.Context())
		looks := 0
		second, err := e.operator.NewWorker("another", nil).Do(ctx, job.ID, func(operator.Job) {
			if looks++; looks == 4 {
				enough()
			}
		})
		if !errors.Is(err, context.Canceled) || second.Done != job.Done || second.Worker != "gone" {
			t.Errorf("another worker has gone on from %d to %d: %v", job.Done, second.Done, err)
		}
	})
}

// TestAPartIsDoneOnce: by whoever believes that the job is where it was, and by nobody who does not have it.
func TestAPartIsDoneOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(10, 1)
		job, mine, others := e.start(action(), operator.JobSpec{Verb: operator.VerbDiscard}), outbox.NewID(), outbox.NewID()
		e.exec("SELECT {schema}.outbox_take_job($1, $2, 'me', 60)", job.ID.String(), mine.String())
		part := func(worker outbox.ID, from, to int64) (parts int) {
			t.Helper()
			err := e.role.QueryRow(t.Context(), e.sql(`SELECT count(*) FROM {schema}.outbox_work_job($1, $2, $3, $4,
				ARRAY(SELECT id FROM {schema}.outbox_events WHERE seq > $3 AND seq <= $4))`), job.ID.String(), worker.String(),
				from, to).Scan(&parts)
			if err != nil {
				t.Fatal(err)
			}
			return parts
		}
		for _, step := range []struct {
			worker   outbox.ID
			from, to int64
			parts    int
		}{
			{others, 0, 4, 0},
			{mine, 0, 4, 1},
			{mine, 0, 4, 0},
			{mine, 4, 3, 0},
			{mine, 2, 6, 0},
			{mine, 4, 11, 0},
			{mine, 4, 10, 1},
		} {
			if got := part(step.worker, step.from, step.to); got != step.parts {
				t.Errorf("from %d to %d a part was done %d times, want %d", step.from, step.to, got, step.parts)
			}
		}
	})
}

// TestNobodyWorksOnAJobWithoutAName: a job that nobody has taken is not ended by one who says no id.
func TestNobodyWorksOnAJobWithoutAName(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(10, 1)
		job := e.start(action(), operator.JobSpec{Verb: operator.VerbDiscard})
		for _, call := range []string{
			"SELECT {schema}.outbox_work_job($1, NULL, 0, 10, '{}')", "SELECT {schema}.outbox_take_job($1, NULL, 'me', 60)",
			"SELECT {schema}.outbox_fail_job($1, NULL, 'why')",
		} {
			if _, err := e.role.Exec(t.Context(), e.sql(call), job.ID.String()); err == nil ||
				!strings.Contains(err.Error(), "worker: it must have an id") {
				t.Errorf("%s: %v", call, err)
			}
		}
		got, err := e.operator.Job(t.Context(), job.ID)
		if err != nil || got.State != operator.JobRunning || got.Position != 0 {
			t.Errorf("the job is %+v, %v", got, err)
		}
	})
}

// TestCopiesAreAskedForOnce: in parts, by two workers one after the other.
func TestCopiesAreAskedForOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const events = 1200
		e.dead(events, 20)
		e.exec("UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp()")
		e.asSent()
		a := action()
		job := e.leave(e.start(a, operator.JobSpec{Verb: operator.VerbRedeliver, Topic: "others"}))
		e.exec("UPDATE {schema}.outbox_jobs SET work_until = clock_timestamp()")
		e.wantJob(e.finish(job), fmt.Sprintf("done %d done 0 passed", events))
		got := e.one(`SELECT count(*) || ' ' || count(DISTINCT event_id) || ' ' || min(topic) FROM {schema}.outbox_requests`)
		if got != fmt.Sprintf("%d %d others", events, events) {
			t.Errorf("the requests are %s", got)
		}
		if got := e.one(`SELECT count(*)::text FROM (SELECT event_seq < lag(event_seq) OVER (ORDER BY id) AS wrong
			FROM {schema}.outbox_requests) r WHERE wrong`); got != "0" {
			t.Errorf("%s copies were asked for before an earlier one", got)
		}
	})
}

// TestWhatFollowsGoesWhereTheJobEnds: nobody works on a canceled job, or on one that has failed at its bound.
func TestWhatFollowsGoesWhereTheJobEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(e *env, job operator.Job) error{
		"canceled": func(e *env, job operator.Job) error {
			_, err := e.operator.CancelJob(e.t.Context(), action(), job.ID)
			return err
		},
		"paused": func(e *env, job operator.Job) error {
			_, err := e.operator.PauseJob(e.t.Context(), action(), job.ID)
			return err
		},
		"failed": func(e *env, _ operator.Job) error {
			e.event("another", "placed", state.Dead)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachServer(t, func(t *testing.T, e *env) {
				e.event("one", "placed", state.DeadBlocking)
				e.event("later", "placed", state.Published)
				job := e.start(action(), operator.JobSpec{Verb: operator.VerbDiscard, Max: 1})
				late := outbox.ID{}
				got, err := e.operator.NewWorker("a test", nil).Do(t.Context(), job.ID, func(j operator.Job) {
					if j.Done == 1 && late == (outbox.ID{}) {
						late = e.event("one", "shipped", state.Waiting)
						if err := end(e, j); err != nil {
							t.Error(err)
						}
					}
				})
				if err != nil || got.Done != 1 {
					t.Errorf("the job is %+v, %v", got, err)
				}
				if row := e.row(late); row != "1 attempts=3 due" {
					t.Errorf("what followed is %s", row)
				}
			})
		})
	}
}

// TestManyDeadLettersAreFoundInParts: what one look reads does not grow with how many there are.
func TestManyDeadLettersAreFoundInParts(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const letters, part = 12_000, 250
		e.dead(letters, 300)
		look := func(what string, spec operator.JobSpec) {
			t.Helper()
			looked, found, err := e.operator.LooksOfJob(t.Context(), spec, letters, part, 5)
			if err != nil || found != 5*part || looked > 5*10*part {
				t.Errorf("%s: %d rows were read for %d events: %v", what, looked, found, err)
			}
		}
		look("dead letters", operator.JobSpec{Verb: operator.VerbRedrive, Filter: e.filter("topic:orders")})
		e.exec("UPDATE {schema}.outbox_events SET state = 7")
		look("all events", operator.JobSpec{Verb: operator.VerbReissue, Filter: e.filter("state:discarded")})
	})
}

// TestASecondLookDecidesNothing: what a part passed by is not done when its followers are looked for once more, however
// it stands by then. A reissue would discard it and make no new one.
func TestASecondLookDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, verb := range []operator.Verb{operator.VerbReissue, operator.VerbDiscard, operator.VerbSkip} {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			onEachServer(t, func(t *testing.T, e *env) {
				job := e.start(action(), operator.JobSpec{Verb: verb})
				one, two := e.event("1", "placed", state.DeadBlocking), e.event("2", "placed", state.Retrying)
				worker := outbox.NewID().String()
				part := func(from, to int, events ...outbox.ID) string {
					t.Helper()
					ids := make([]string, len(events))
					for i, id := range events {
						ids[i] = id.String()
					}
					return e.one(`SELECT string_agg(done || ' done ' || passed || ' passed', '') FROM {schema}.outbox_work_job($1, $2,
						$3, $4, $5::text[]::uuid[])`, job.ID.String(), worker, from, to, ids)
				}
				e.exec("SELECT {schema}.outbox_take_job($1, $2, 'w', 600)", job.ID.String(), worker)
				if got := part(0, 1, one, two); got != "1 done 1 passed" {
					t.Fatalf("the part has %s", got)
				}
				e.becomes(two, state.DeadBlocking)
				before := e.row(two)
				if got := part(1, 1); got != "1 done 1 passed" {
					t.Errorf("the second look has %s", got)
				}
				if after := e.row(two); after != before || e.actions(two) != "" {
					t.Errorf("what was passed by became %s, and the log has %q", after, e.actions(two))
				}
			})
		})
	}
}

// TestReissueLeavesOutWhatItCannotCopy: a payload in which the id cannot be told from the data holds up no other.
func TestReissueLeavesOutWhatItCannotCopy(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		good := e.event("1", "placed", state.Published)
		events := []outbox.ID{good}
		for _, payload := range []string{
			`{"data":{"eventId":"ID"},"eventId":"ID"}`, `{"eventId":"ID","eventId":"ID"}`, `{"event\u0049d":"ID"}`, `[]`, `{}`,
		} {
			id := outbox.NewID()
			e.exec(`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, state,
				published_at) VALUES (1, $1::text::uuid, 'placed', 'order', 'x', $2::text::json, 6, now())`, id.String(),
				strings.ReplaceAll(payload, "ID", id.String()))
			events = append(events, id)
		}
		results, made, err := e.operator.Reissue(t.Context(), action(), events...)
		if err != nil {
			t.Fatal(err)
		}
		for i, result := range results {
			if want := i == 0; (result.Outcome == operator.Done) != want || (made[i] != outbox.ID{}) != want {
				t.Errorf("event %d: %+v, %s", i, result, made[i])
			}
		}
		if n := e.one("SELECT count(*)::text FROM {schema}.outbox_events WHERE state = 0"); n != "1" {
			t.Errorf("%s new events", n)
		}
	})
}

// TestATopicOfManyTypes: its job names them all, however long that is.
func TestATopicOfManyTypes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(`WITH relay AS (INSERT INTO {schema}.outbox_relays (id, token, name, version)
				VALUES (gen_random_uuid(), gen_random_uuid(), 'r', 'v') RETURNING id)
			INSERT INTO {schema}.outbox_known (relay, event_type, topic)
			SELECT id, 'a_type_with_a_rather_long_name_' || i, 'orders' FROM relay, generate_series(1, 100) i`)
		e.exec(`INSERT INTO {schema}.outbox_beats (relay, number, until) SELECT id, 1, now() + interval '1 hour'
			FROM {schema}.outbox_relays`)
		e.event("1", "a_type_with_a_rather_long_name_77", state.Published)
		e.asSent()
		job := e.start(action(), operator.JobSpec{Verb: operator.VerbRedeliver, Filter: e.filter("topic:orders")})
		e.wantJob(e.finish(job), "done 1 done 0 passed")
	})
}

// TestAnActionOnAJobIsOfThatJob: its id is not good for another one.
func TestAnActionOnAJobIsOfThatJob(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		first := e.start(action(), operator.JobSpec{Verb: operator.VerbDiscard})
		second := e.start(action(), operator.JobSpec{Verb: operator.VerbDiscard})
		a := action()
		if got, err := e.operator.CancelJob(t.Context(), a, first.ID); err != nil || got != operator.Done {
			t.Errorf("%s, %v", got, err)
		}
		if got, err := e.operator.CancelJob(t.Context(), a, second.ID); err == nil {
			t.Errorf("another job by the same action: %s", got)
		}
	})
}

// TestAWorkerWithoutARightLeavesTheJobToOthers: the job goes on where somebody has it.
func TestAWorkerWithoutARightLeavesTheJobToOthers(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state)
			SELECT g.id, 'placed', 'order', '1', json_build_object('eventId', g.id, 'data', json_build_object('n', 7)), 7
			  FROM (SELECT {schema}.outbox_uuid7() AS id) g`)
		admin := operator.New(e.admin, e.schema)
		job, err := admin.StartJob(t.Context(), action(), operator.JobSpec{
			Verb: operator.VerbReissue, Filter: e.filter("state:discarded data.n:7"),
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		nobody := func(operator.Job) {}
		if _, err := e.operator.NewWorker("without", nil).Do(t.Context(), job.ID, nobody); !errors.Is(err,
			operator.ErrPayloads) {
			t.Errorf("without the right: %v", err)
		}
		job, err = e.operator.Job(t.Context(), job.ID)
		if err != nil || job.State != operator.JobRunning || job.Worker != "" {
			t.Errorf("the job is %s, %q has it, %v", job.State, job.Worker, err)
		}
		if job, err = admin.NewWorker("with", nil).Do(t.Context(), job.ID, nobody); err != nil {
			t.Fatal(err)
		}
		e.wantJob(job, "done 1 done 0 passed")
	})
}

// TestABusyServerEndsNoJob: a lock that was not had in time is asked for again. What is no such thing is told, and
// leaves the job as it is.
func TestABusyServerEndsNoJob(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for code, want := range map[string]string{"55P03": "", "08006": "SQLSTATE 08006"} {
			e.dead(1, 1)
			e.exec("CREATE SEQUENCE {schema}.tries") // which no rollback takes back
			e.exec(`CREATE FUNCTION {schema}.busy() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
				IF NEW.event_id IN (SELECT id FROM {schema}.outbox_events) AND nextval('{schema}.tries') = 1 THEN
					RAISE EXCEPTION 'busy' USING ERRCODE = '` + code + `'; END IF; RETURN NEW; END $$`)
			e.exec(`CREATE TRIGGER busy BEFORE INSERT ON {schema}.outbox_actions FOR EACH ROW EXECUTE FUNCTION {schema}.busy()`)
			job := e.start(action(), operator.JobSpec{Verb: operator.VerbDiscard})
			got, err := e.operator.NewWorker("a test", nil).Do(t.Context(), job.ID, func(operator.Job) {})
			if want == "" && (err != nil || got.State != operator.JobDone || got.Done != 1) ||
				want != "" && (err == nil || !strings.Contains(err.Error(), want) || got.State != operator.JobRunning) {
				t.Errorf("%s: %+v, %v", code, got, err)
			}
			e.wantJob(e.finish(job), "done 1 done 0 passed")
			e.exec("DROP FUNCTION {schema}.busy() CASCADE")
			e.exec("DROP SEQUENCE {schema}.tries")
		}
	})
}
