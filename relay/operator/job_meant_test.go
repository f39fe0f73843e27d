package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// startBySQL starts a job as people with psql do.
func (e *env) startBySQL(verb, filter string) operator.Job {
	e.t.Helper()
	id := outbox.NewID()
	if _, err := e.role.Exec(e.t.Context(), e.sql("SELECT {schema}.outbox_start_job('eve', 'x', $1, $2, 100, 1, "+
		"action_id => $3::text::uuid)"), verb, filter, id.String()); err != nil {
		e.t.Fatal(err)
	}
	job, err := e.operator.Job(e.t.Context(), id)
	if err != nil {
		e.t.Fatal(err)
	}
	return job
}

// TestAJobTellsNobodyWhatPayloadsHold: a worker may read them, and what a job has done would say whether there is such
// a value. So who may not read payloads starts none that asks, however it is written; and the log has no values.
func TestAJobTellsNobodyWhatPayloadsHold(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		start := func(filter string) error {
			_, err := e.role.Exec(t.Context(),
				e.sql("SELECT {schema}.outbox_start_job('eve', 'x', 'redeliver', $1, 1, 1, 'nowhere')"), filter)
			return err
		}
		asking := []string{
			"data.ssn:1234", "type:a data.ssn:1234 tenant:b", `"data.ssn:1234"`, `da"ta".ssn:1234`, `"d\ata.ssn:1 2"`,
			`type:"a b"  data.ssn:1`, `error:"a \" b" data.ssn:1`, `""data.ssn:1`, `error:a\ data.ssn:1`,
		}
		var spaces []rune
		for r := range rune(unicode.MaxRune) {
			if unicode.IsSpace(r) {
				spaces = append(spaces, r)
				asking = append(asking, "type:a"+string(r)+"data.ssn:1")
			}
		}
		if len(spaces) < 20 {
			t.Fatalf("there are only %d spaces", len(spaces))
		}
		for _, filter := range asking {
			if err := start(filter); sqlstate.Of(err) != sqlstate.InsufficientPrivilege ||
				!strings.Contains(err.Error(), "may not read payloads") {
				t.Errorf("%q: %v", filter, err)
			}
		}
		spec := operator.JobSpec{Verb: operator.VerbRedeliver, Filter: e.filter("data.ssn:1234")}
		if _, err := e.operator.StartJob(t.Context(), action(), spec, 1); !errors.Is(err, operator.ErrPayloads) {
			t.Errorf("%v", err)
		}
		if jobs := e.one("SELECT count(*)::text FROM {schema}.outbox_jobs"); jobs != "0" {
			t.Errorf("%s jobs were started", jobs)
		}
		for _, filter := range []string{
			"type:data.ssn", `error:"lost data.ssn:1"`, `error:"\" data.ssn:1"`, "error:x\"  \"data.ssn:1", "",
		} {
			if err := start(filter); err != nil {
				t.Errorf("%q: %v", filter, err)
			}
		}
		e.exec("GRANT SELECT (payload_json) ON {schema}.outbox_events TO operator_" + e.schema)
		spec.Filter = e.filter(`type:a "data.a name:with spaces" data.ssn:1234 tenant:"a b"`)
		a := action()
		e.start(a, spec)
		if got, want := e.one("SELECT target FROM {schema}.outbox_actions WHERE action_id = $1", a.ID.String()),
			`job: type:a "tenant:a b" state:published data.a name:... data.ssn:...`; got != want {
			t.Errorf("the log has %s, want %s", got, want)
		}
		e.start(a, spec)
		spec.Filter.Data[1].Value = "9999"
		if _, err := e.operator.StartJob(t.Context(), a, spec, 0); err == nil ||
			!strings.Contains(err.Error(), "another decision needs another id") {
			t.Errorf("another value: %v", err)
		}
	})
}

// TestWhatDiesMeanwhileIsNotMeant: neither between the plan and the start nor while the job runs, though its number is
// below the last that is meant.
func TestWhatDiesMeanwhileIsNotMeant(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(1, 1)
		early, late := e.event("a", "placed", state.Ready), e.event("b", "placed", state.Ready)
		again := e.event("c", "placed", state.Dead)
		e.dead(1, 1)
		dies := func(id outbox.ID) {
			e.becomes(id, state.Dead)
			e.letter(id, false)
		}
		spec := operator.JobSpec{Verb: operator.VerbDiscard, Filter: e.filter("type:placed")}
		plan, err := e.operator.PlanJob(t.Context(), spec, patience)
		if err != nil || plan.Events != 3 {
			t.Fatalf("%+v, %v", plan, err)
		}
		dies(early)
		dies(again) // somebody had redriven it
		job := e.start(action(), plan.Spec)
		dies(late)
		e.wantJob(e.finish(job), "done 2 done 0 passed")
		for _, id := range []outbox.ID{early, late, again} {
			if row := e.row(id); row != "5 attempts=3" {
				t.Errorf("what died meanwhile is %s", row)
			}
		}
		// Of a job that was started by hand it is the time of its start.
		more := e.event("d", "placed", state.Ready)
		job = e.startBySQL("discard", "type:placed state:dead")
		dies(more)
		e.wantJob(e.finish(job), "done 3 done 0 passed")
		if row := e.row(more); row != "5 attempts=3" {
			t.Errorf("what died behind it is %s", row)
		}
	})
}

// TestAJobStartedByHandMeansWhatItSays: which types go to a topic can change while it runs, so it does not begin with
// one, also when it is resumed; and an age is that at its start. The topic of a dead letter stays.
func TestAJobStartedByHandMeansWhatItSays(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.knows("main", map[string]string{"placed": "orders", "paid": "money"})
		e.event("1", "paid", state.Published)
		e.event("2", "paid", state.Discarded)
		e.event("3", "paid", state.Parked)
		e.dead(2, 1)
		e.asSent()
		for _, is := range []struct{ verb, filter, want string }{
			{"redeliver", "topic:orders", "topic: "},
			{"redeliver", "topic:orders type:paid", "topic: "},
			{"reissue", "topic:orders state:discarded", "topic: "},
			{"release", "topic:orders", "topic: "},
			{"discard", "topic:money state:dead", ""},
			{"discard", "topic:orders state:dead", ""},
		} {
			job := e.finish(e.startBySQL(is.verb, is.filter))
			if is.want == "" {
				if job.State != operator.JobDone {
					t.Errorf("%s %s: it is %s: %s", is.verb, is.filter, job.State, job.Error)
				}
				continue
			}
			for _, when := range []string{"started", "resumed"} {
				if job.State != operator.JobFailed || job.Done != 0 || !strings.HasPrefix(job.Error, is.want) {
					t.Errorf("%s %s: %s it is %s with %d done: %s", is.verb, is.filter, when, job.State, job.Done, job.Error)
				}
				if _, err := e.operator.ResumeJob(t.Context(), action(), job.ID); err != nil {
					t.Fatal(err)
				}
				job = e.finish(job)
			}
		}
		if left := e.one("SELECT count(*)::text FROM {schema}.outbox_events WHERE state = 5"); left != "0" {
			t.Errorf("%s dead events are left", left)
		}
	})
}

// TestAnAgeIsThatAtTheStartOfAJob: also where the filter was written down with it, and an hour later.
func TestAnAgeIsThatAtTheStartOfAJob(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(2, 1)
		job := e.startBySQL("discard", "created:<1h")
		// As if the job had been started 2 hours ago, and the events half an hour before.
		e.exec("ALTER TABLE {schema}.outbox_jobs DISABLE TRIGGER USER")
		e.exec("ALTER TABLE {schema}.outbox_events DISABLE TRIGGER USER")
		e.exec("ALTER TABLE {schema}.outbox_dlq DISABLE TRIGGER USER")
		e.exec("UPDATE {schema}.outbox_jobs SET last_at = now() - interval '2 hours'")
		e.exec("UPDATE {schema}.outbox_events SET created_at = now() - interval '150 minutes'")
		e.exec("UPDATE {schema}.outbox_dlq SET failed_at = now() - interval '150 minutes'")
		e.wantJob(e.finish(job), "done 2 done 0 passed")
	})
}

// TestAReissueOfWhatIsClosedHasABound: what is published while it runs is not meant, also beside what was discarded.
func TestAReissueOfWhatIsClosedHasABound(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.event("a", "placed", state.Discarded)
		e.event("b", "placed", state.Published)
		late := e.event("c", "placed", state.Ready)
		e.event("d", "placed", state.Discarded)
		spec := operator.JobSpec{Verb: operator.VerbReissue, Filter: e.filter("state:discarded,published")}
		plan, err := e.operator.PlanJob(t.Context(), spec, patience)
		if err != nil || plan.Events != 3 {
			t.Fatalf("%+v, %v", plan, err)
		}
		publish := func(id outbox.ID) {
			e.becomes(id, state.Published)
			e.exec("UPDATE {schema}.outbox_events SET published_at = clock_timestamp() WHERE id = $1", id.String())
		}
		publish(late)
		e.wantJob(e.finish(e.start(action(), plan.Spec)), "done 3 done 0 passed")
	})
}

// TestWhatIsDiscardedMeanwhileIsNotMeant: neither what was dead when a reissue was planned, nor what another action has
// issued again since: there would be two new events of it.
func TestWhatIsDiscardedMeanwhileIsNotMeant(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for is, filter := range map[string]string{
			"a": "state:discarded type:a", "b": "state:discarded,published aggregate:order/b",
		} {
			before, again := e.event(is, is, state.Dead), e.event(is, is, state.Discarded)
			discarded, reissued := e.event(is, is, state.Dead), e.event(is, is, state.DeadBlocking)
			e.do(e.operator.Discard, action(), before)
			spec := operator.JobSpec{Verb: operator.VerbReissue, Filter: e.filter(filter)}
			plan, err := e.operator.PlanJob(t.Context(), spec, patience)
			if err != nil || plan.Events != 2 {
				t.Fatalf("%s: %+v, %v", filter, plan, err)
			}
			e.do(e.operator.Discard, action(), discarded)
			if _, _, err := e.operator.Reissue(t.Context(), action(), reissued, again); err != nil {
				t.Fatal(err)
			}
			e.wantJob(e.finish(e.start(action(), plan.Spec)), "done 1 done 0 passed")
			for id, want := range map[outbox.ID]string{before: "1", again: "1", discarded: "0", reissued: "1"} {
				if made := e.one(`SELECT count(*)::text FROM {schema}.outbox_events WHERE headers ->> 'reissue_of' = $1`,
					id.String()); made != want {
					t.Errorf("%s: of one event there are %s new ones, want %s", filter, made, want)
				}
			}
		}
	})
}

// TestATopicWithoutATypeIsNoJob: its filter would be one that means everything.
func TestATopicWithoutATypeIsNoJob(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.knows("main", map[string]string{"placed": "orders", "paid": "money"})
		e.event("1", "placed", state.Published)
		for _, verb := range []operator.Verb{operator.VerbRedeliver, operator.VerbRelease} {
			spec := operator.JobSpec{Verb: verb, Filter: e.filter("topic:money type:placed,shipped")}
			const want = `none of the types placed, shipped goes to "money"`
			plan, err := e.operator.PlanJob(t.Context(), spec, patience)
			if !errors.Is(err, operator.ErrNotUnderstood) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the plan is %+v, %v", verb, plan, err)
			}
			if _, err := e.operator.StartJob(t.Context(), action(), spec, 0); !errors.Is(err, operator.ErrNotUnderstood) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: it starts, %v", verb, err)
			}
		}
		spec := operator.JobSpec{Verb: operator.VerbRedeliver, Filter: e.filter("topic:money type:placed,paid")}
		if plan, err := e.operator.PlanJob(t.Context(), spec, patience); err != nil ||
			plan.Filter != "type:paid state:published" {
			t.Errorf("one of two: %+v, %v", plan, err)
		}
	})
}

// TestAnIDIsOneDecision: the same id with anything else is refused, and with the same it is the same job, also where
// its times are relative and its bound is not named.
func TestAnIDIsOneDecision(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(2, 1)
		spec := func(filter string) operator.JobSpec {
			return operator.JobSpec{Verb: operator.VerbDiscard, Filter: e.filter(filter), Max: 7, AfterSeq: 1}
		}
		for _, first := range []string{
			"type:rel", "type:rel created:>1s", "type:rel created:<2h", "type:rel created:2026-01-31",
		} {
			a := action()
			plan, err := e.operator.PlanJob(t.Context(), spec(first), patience)
			if err != nil {
				t.Fatal(err)
			}
			job := e.start(a, plan.Spec)
			unnamed := spec(first)
			unnamed.Max = 0
			for _, same := range []operator.JobSpec{spec(first), plan.Spec, unnamed} {
				if again := e.start(a, same); again.ID != job.ID {
					t.Errorf("%s: sent again it is %s", first, again.ID)
				}
			}
			more, behind := spec(first), spec(first)
			more.Max, behind.AfterSeq = 8, 0
			others := []operator.JobSpec{more, behind, spec(first + " tenant:x")}
			for _, other := range []string{"type:rel", "type:rel created:>2h", "type:rel created:<1h"} {
				if other != first {
					others = append(others, spec(other))
				}
			}
			for _, other := range others {
				if _, err := e.operator.StartJob(t.Context(), a, other, 0); err == nil ||
					!strings.Contains(err.Error(), "another decision needs another id") {
					t.Errorf("%s, and then %+v: %v", first, other, err)
				}
			}
		}
	})
}

// TestATimeWithAnOffset: it can be planned and started, as any other.
func TestATimeWithAnOffset(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(2, 1)
		begin := time.Now().Add(-time.Hour).In(time.FixedZone("", 2*60*60)).Format(time.RFC3339)
		spec := operator.JobSpec{Verb: operator.VerbDiscard, Filter: e.filter("created:" + begin + "..")}
		plan, err := e.operator.PlanJob(t.Context(), spec, patience)
		if err != nil || plan.Events != 2 {
			t.Fatalf("%+v, %v", plan, err)
		}
		e.wantJob(e.finish(e.start(action(), plan.Spec)), fmt.Sprintf("done %d done 0 passed", plan.Events))
	})
}
