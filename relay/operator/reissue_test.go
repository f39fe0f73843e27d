package operator_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// A new event of an old one that nobody meant is done twice by every consumer. So the parts of a job, and a reissue of
// dead events, look at how the events stand when nobody else can change them any more.

// newEvents is how many new events there are of old ones, and of how many old ones.
func (e *env) newEvents() string {
	e.t.Helper()
	return e.one(`SELECT count(*) || ' of ' || count(DISTINCT headers ->> 'reissue_of') FROM {schema}.outbox_events
		WHERE headers ->> 'reissue_of' IS NOT NULL`)
}

// takenJob starts a job, and takes it for a worker of this name.
func (e *env) takenJob(verb operator.Verb, worker outbox.ID) operator.Job {
	e.t.Helper()
	job := e.start(action(), operator.JobSpec{Verb: verb})
	e.exec("SELECT {schema}.outbox_take_job($1, $2, 'a test', 600)", job.ID.String(), worker.String())
	return job
}

// part is what a worker sends for a part with all events up to the job's last.
const part = `SELECT count(*), coalesce(max(done), 0), coalesce(max(passed), 0)
	FROM {schema}.outbox_work_job($1, $2, 0, $3,
		ARRAY(SELECT e.id FROM {schema}.outbox_events e WHERE e.seq <= $3 ORDER BY e.seq))`

// worked is what became of a part.
type worked struct {
	parts, done, passed int
	err                 error
}

// work sends a part, and goes on.
func (s session) work(job operator.Job, worker outbox.ID) <-chan worked {
	ended := make(chan worked, 1)
	s.busy.Go(func() {
		var end worked
		end.err = s.QueryRow(s.e.t.Context(), s.e.sql(part), job.ID.String(), worker.String(), job.LastSeq).
			Scan(&end.parts, &end.done, &end.passed)
		ended <- end
	})
	return ended
}

// TestAJobReissuesWhatIsStillDead: between the look at which an event was dead and the part, somebody has decided
// otherwise, and it may have been published.
func TestAJobReissuesWhatIsStillDead(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		discarded, published := e.event("1", "placed", state.DeadBlocking), e.event("2", "placed", state.Dead)
		skipped, worker := e.event("3", "placed", state.DeadBlocking), outbox.NewID()
		job := e.takenJob(operator.VerbReissue, worker)
		e.do(e.operator.Discard, action(), discarded)
		e.do(e.operator.Redrive, action(), published)
		e.becomes(published, state.Published)
		e.do(e.operator.Skip, action(), skipped)
		if got := receive(t, e.connect(true).work(job, worker)); got != (worked{parts: 1, done: 1, passed: 2}) {
			t.Errorf("the part has %+v", got)
		}
		if got := e.newEvents(); got != "1 of 1" || e.row(skipped) != "7 attempts=3" {
			t.Errorf("there are new events %s, and the one that was still dead is %s", got, e.row(skipped))
		}
		if rows := e.row(discarded) + ", " + e.row(published); rows != "7 attempts=3, 6 attempts=0" {
			t.Errorf("the others are %s", rows)
		}
	})
}

// TestTwoJobsReissueADeadEventOnce: both have found the same events before either makes new ones.
func TestTwoJobsReissueADeadEventOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const events = 20
		e.dead(events, 4)
		mine, others := outbox.NewID(), outbox.NewID()
		one, two := e.takenJob(operator.VerbReissue, mine), e.takenJob(operator.VerbReissue, others)
		first, second := e.connect(true), e.connect(true)
		open := first.hold(part, one.ID.String(), mine.String(), one.LastSeq)
		working := second.work(two, others)
		second.waitsFor(first)
		if err := open.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, working); got != (worked{parts: 1, passed: events}) {
			t.Errorf("the part of the second job has %+v", got)
		}
		if got := e.newEvents(); got != fmt.Sprintf("%d of %[1]d", events) {
			t.Errorf("there are new events %s", got)
		}
	})
}

// TestTwoWorkersAtTwoJobsReissueADeadEventOnce: the same by whole jobs, which find the next part while it is not due.
func TestTwoWorkersAtTwoJobsReissueADeadEventOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const events = 100
		e.dead(events, 10)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var all sync.WaitGroup
		jobs := make([]operator.Job, 2)
		for i := range jobs {
			jobs[i] = e.start(action(), operator.JobSpec{Verb: operator.VerbReissue, Rate: 100})
			all.Go(func() {
				var err error
				if jobs[i], err = e.operator.NewWorker("a test", nil).Do(ctx, jobs[i].ID, func(operator.Job) {}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := e.newEvents(); got != fmt.Sprintf("%d of %[1]d", events) || jobs[0].Done+jobs[1].Done != events {
			t.Errorf("there are new events %s; the jobs have made %d and %d", got, jobs[0].Done, jobs[1].Done)
		}
	})
}

// TestTwoSessionsReissueADeadEventOnce: the second one comes while the first has not ended.
func TestTwoSessionsReissueADeadEventOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id, published := e.event("1", "placed", state.DeadBlocking), e.event("2", "placed", state.Published)
		first, second := e.connect(true), e.connect(true)
		open := first.hold("SELECT {schema}.outbox_reissue('bob', 'why', $1::text[]::uuid[], dead_only => true)",
			[]string{id.String()})
		ended := make(chan done, 1)
		second.busy.Go(func() {
			var end done
			end.results, _, end.err = operator.New(second.Conn, e.schema).ReissueDead(t.Context(), action(), id, published)
			ended <- end
		})
		second.waitsFor(first)
		if err := open.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := receive(t, ended)
		if got.err != nil {
			t.Fatal(got.err)
		}
		for i, was := range []string{"discarded", "published"} {
			if r := got.results[i]; r.Outcome != operator.NotApplicable || r.Was != was {
				t.Errorf("of what is %s: %+v", was, r)
			}
		}
		if made := e.newEvents(); made != "1 of 1" {
			t.Errorf("there are new events %s", made)
		}
	})
}

// TestADeadEventIsReissuedOnceByOneAction: sent again it says so, and has the same new event.
func TestADeadEventIsReissuedOnceByOneAction(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id, a := e.event("1", "placed", state.Dead), action()
		results, made, err := e.operator.ReissueDead(t.Context(), a, id)
		if err != nil || results[0].Outcome != operator.Done || made[0] == (outbox.ID{}) {
			t.Fatalf("%+v, %v, %v", results, made, err)
		}
		again, same, err := e.operator.ReissueDead(t.Context(), a, id)
		if err != nil || again[0].Outcome != operator.DoneBefore || same[0] != made[0] || e.newEvents() != "1 of 1" {
			t.Errorf("again: %+v, %v, %v; there are new events %s", again, same, err, e.newEvents())
		}
	})
}

// TestAnEventIsIssuedAgainOnce: a second edit or reissue, by another action, makes another new event only if that is
// asked for, and says which one there is.
func TestAnEventIsIssuedAgainOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		edit := func(id outbox.ID) (operator.Result, outbox.ID) {
			t.Helper()
			result, made, err := e.operator.Edit(t.Context(), action(), id, []byte(`{"a":1}`))
			if err != nil {
				t.Fatal(err)
			}
			return result, made
		}
		for was, id := range map[string]outbox.ID{
			"discarded": e.event("1", "placed", state.DeadBlocking), "published": e.event("2", "placed", state.Published),
		} {
			first, made := edit(id)
			if first.Outcome != operator.Done || made == (outbox.ID{}) {
				t.Fatalf("%+v, %s", first, made)
			}
			if again, same := edit(id); again.Outcome != operator.NotApplicable || again.Was != was || same != made {
				t.Errorf("edited twice: %+v, and the new event is %s, not %s", again, same, made)
			}
			results, ids, err := e.operator.Reissue(t.Context(), action(), id)
			if err != nil || results[0].Outcome != operator.NotApplicable || ids[0] != made {
				t.Errorf("edited and issued again: %+v, %v, %v", results, ids, err)
			}
		}
		if got := e.newEvents(); got != "2 of 2" {
			t.Fatalf("there are new events %s", got)
		}
		id := e.event("3", "placed", state.Discarded)
		a := action()
		for range 2 {
			results, made, err := e.operator.ReissueAgain(t.Context(), a, id)
			if err != nil || made[0] == (outbox.ID{}) {
				t.Errorf("%+v, %v, %v", results, made, err)
			}
		}
		result, made, err := e.operator.EditAgain(t.Context(), action(), id, []byte(`{"a":2}`))
		if err != nil || result.Outcome != operator.Done || made == (outbox.ID{}) || e.newEvents() != "4 of 3" {
			t.Errorf("asked for: %+v, %s, %v, and there are new events %s", result, made, err, e.newEvents())
		}
	})
}

// TestAnActionIsOneDecision: sent again under its id with something else, it is another one, and is refused.
func TestAnActionIsOneDecision(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		ctx, one, two := t.Context(), e.event("1", "placed", state.Published), e.event("2", "placed", state.Published)
		copies, edited, plain := action(), action(), action()
		redeliver := func(a operator.Action, topic string, events ...outbox.ID) error {
			_, err := e.operator.Redeliver(ctx, a, operator.Redelivery{Topic: topic}, events...)
			return err
		}
		edit := func(a operator.Action, id outbox.ID, data string) error {
			_, _, err := e.operator.EditAgain(ctx, a, id, []byte(data))
			return err
		}
		again := func(a operator.Action, id outbox.ID) error {
			_, _, err := e.operator.ReissueAgain(ctx, a, id)
			return err
		}
		e.dead(2, 1)
		dead := e.event("3", "placed", state.Dead)
		job := e.start(action(), operator.JobSpec{Verb: operator.VerbRedrive})
		copying := e.start(action(), operator.JobSpec{Verb: operator.VerbRedeliver, Topic: "a"})
		ofJob := func(job operator.Job) operator.Action {
			a := action()
			a.ID = job.ID
			return a
		}
		const data = ` {"b" : [1, 2.0, "\u0041"]} `
		for _, step := range []struct {
			what string
			err  error
			ok   bool
		}{
			{"copies", redeliver(copies, "a", one), true},
			{"the same and one more", redeliver(copies, "a", one, two), true},
			{"copies to another topic", redeliver(copies, "b", one), false},
			{"copies to where the type goes", redeliver(copies, "", one), false},
			{"copies under the id of a job", redeliver(ofJob(copying), "a", one), false},
			{"an edit", edit(edited, one, data), true},
			{"the same edit", edit(edited, one, data), true},
			{"an edit with other data", edit(edited, one, `{"b":2}`), false},
			{"an edit of another event", edit(edited, two, data), false},
			{"no edit", again(edited, one), false},
			{"a reissue", again(plain, two), true},
			{"the same and another event", again(plain, one), true},
			{"an edit under the id of a reissue", edit(plain, two, data), false},
			{"a redrive under the id of a job", func() error {
				_, err := e.operator.Redrive(ctx, ofJob(job), dead)
				return err
			}(), false},
			{"a job under the id of copies", func() error {
				_, err := e.operator.StartJob(ctx, copies, operator.JobSpec{Verb: operator.VerbRedeliver, Topic: "a"}, 0)
				return err
			}(), false},
		} {
			if step.ok && step.err != nil ||
				!step.ok && (step.err == nil || !strings.Contains(step.err.Error(), "another decision needs another id")) {
				t.Errorf("%s: %v", step.what, step.err)
			}
		}
		// What was erased since says nothing any more: the same action is answered all the same.
		e.exec("UPDATE {schema}.outbox_events SET state = 6, published_at = now() WHERE state = 0")
		e.exec("UPDATE {schema}.outbox_requests SET delivered_at = now()")
		e.exec(`SELECT {schema}.outbox_erase('ann', 'why',
			ARRAY(SELECT id FROM {schema}.outbox_events WHERE headers ->> 'reissue_of' IS NOT NULL))`)
		if err := edit(edited, one, data); err != nil {
			t.Errorf("the same edit, erased since: %v", err)
		}
	})
}

// TestAnEditIsWhatAnEmitTakes: data that no emit would write make no new event, and leave the old one as it is.
func TestAnEditIsWhatAnEmitTakes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		dead := e.event("1", "placed", state.Dead)
		before := e.row(dead)
		for data, want := range map[string]string{
			`{"n":"\u0000"}`: "22P05",
			`{"n":"\ud800"}`: "22P02",
			`{"n":"` + strings.Repeat("x", 1<<20-1-8) + `"}`:                  "the limit is 1048576",
			`{"n":"` + strings.Repeat("x", 1<<20) + `"}`:                      "the limit is 1048576",
			`{"n":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + "}": "nested deeper",
		} {
			if _, _, err := e.operator.Edit(t.Context(), action(), dead, []byte(data)); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%.40s: %v, want %s", data, err, want)
			}
		}
		if row := e.row(dead); row != before || e.newEvents() != "0 of 0" {
			t.Errorf("the event is %s, new events are %s", row, e.newEvents())
		}
		if result, _, err := e.operator.Edit(t.Context(), action(), dead,
			[]byte(`{"n":"`+strings.Repeat("x", 1<<20-512)+`"}`)); err != nil || result.Outcome != operator.Done {
			t.Errorf("as much as fits: %+v, %v", result, err)
		}
	})
}

// TestWhatCannotBeIssuedAgainIsPassedBy: rows that somebody has written who names the lane fail neither a reissue nor a
// job for the others.
func TestWhatCannotBeIssuedAgainIsPassedBy(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(2, 1)
		e.exec(`WITH made AS (
				INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, headers,
					attempt_count, state)
				SELECT {schema}.outbox_lane('default', 'order', '1'), g.id, 'placed', 'order', '1',
					CASE i WHEN 5 THEN '[1]' ELSE json_build_object('eventId', g.id) END, CASE i WHEN 1 THEN '[1]'
					WHEN 2 THEN 'null' WHEN 3 THEN '{"\u0000":"x"}'
					WHEN 4 THEN ('{"a":"' || repeat('x', 524288 - 8) || '"}')::json END, 3, 5
				  FROM (SELECT i, {schema}.outbox_uuid7() AS id FROM generate_series(1, 5) i OFFSET 0) g
				RETURNING *)
			INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
				aggregate_type, aggregate_id, topic, error_reason, payload_json, headers)
			SELECT seq, id, created_at, 3, false, namespace, event_type, aggregate_type, aggregate_id, 'orders', 'rejected',
				payload_json, headers FROM made`)
		e.dead(1, 1)
		e.wantJob(e.finish(e.start(action(), operator.JobSpec{Verb: operator.VerbReissue})), "done 3 done 5 passed")
		if got := e.one("SELECT count(*)::text FROM {schema}.outbox_events WHERE state = 0"); got != "3" {
			t.Errorf("there are %s new events", got)
		}
	})
}
