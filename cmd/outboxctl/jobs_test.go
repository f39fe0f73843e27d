package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// jobID is the id that a command prints of the job it started.
var jobID = regexp.MustCompile(`(?m)^job (\S+)$`)

// letters writes dead events with their letters, all of one topic.
func (e *env) letters(t *testing.T, number int) {
	t.Helper()
	e.exec(t, `WITH made AS (
			INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state)
			SELECT g.id, 'placed', 'order', (i % 7)::text, json_build_object('eventId', g.id), 5
			  FROM (SELECT i, {schema}.outbox_uuid7() AS id FROM generate_series(1, $1::integer) i OFFSET 0) g
			RETURNING *)
		INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
			aggregate_type, aggregate_id, topic, error_reason, payload_json)
		SELECT seq, id, created_at, 3, false, namespace, event_type, aggregate_type, aggregate_id, 'orders', 'rejected',
			payload_json FROM made`, number)
}

func (e *env) states(t *testing.T) string {
	t.Helper()
	return e.text(t, `SELECT string_agg(state || ':' || n, ' ' ORDER BY state) FROM (
		SELECT state, count(*) AS n FROM {schema}.outbox_events GROUP BY state) s`)
}

// a call of a command: what it is given, and what it must say and leave behind.
type jobCall struct {
	line   string
	input  string
	code   int
	says   string // in both outputs
	states string
}

func (e *env) try(t *testing.T, calls []jobCall) {
	t.Helper()
	for _, call := range calls {
		code, out, said := e.callWith(t, call.input, strings.Fields(call.line)...)
		if code != call.code || !strings.Contains(out+said, call.says) {
			t.Errorf("%s: exit code %d, want %d, and %q in\n%s%s", call.line, code, call.code, call.says, out, said)
		}
		if got := e.states(t); call.states != "" && got != call.states {
			t.Errorf("after %s the events are %s, want %s", call.line, got, call.states)
		}
	}
}

// TestAVerbWithAFilterIsAJob: counted, bounded, confirmed, done once.
func TestAVerbWithAFilterIsAJob(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 30)
		const redrive = "dead redrive topic:orders reason:rejected --actor ann "
		const again = " --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"
		e.try(t, []jobCall{
			{line: "dead redrive --reason x", code: exitUsage, says: "name events by their ids, or write a filter"},
			{line: "dead redrive state:published --reason x", code: exitUsage, says: "not from what is published"},
			{line: redrive + "--dry-run", says: "30 events, made from", states: "5:30"},
			{line: redrive + "--dry-run -o json", says: `"events": 30`},
			{line: redrive + "--dry-run --max 29", code: exitUsage, says: "which is more than --max 29: if all of them are"},
			{line: redrive + "--dry-run --max 29", code: exitUsage, says: "are meant, say --max 30"},
			{line: redrive + "--dry-run --max -1", code: exitUsage, says: "it must be above 0"},
			{line: redrive + "--dry-run --action odd", code: exitUsage, says: "--action: \"odd\" is no id"},
			{line: redrive + "--reason x -o json", code: exitUsage, says: "--output is for --dry-run"},
			{line: redrive + "--reason x --here --detach", code: exitUsage, says: "use one of them", states: "5:30"},
			{line: redrive + "--count 30", code: exitUsage, says: "it is --max"},
			{line: "dead list --reason rejected", code: exitUsage, says: "a term of the filter, reason:VALUE"},
			{line: "pause --topic orders", code: exitUsage, says: "outboxctl topics pause TOPIC"},
			{line: "redrive x --reason y", code: exitUsage, says: "it is 'outboxctl dead redrive'"},
			{line: "redrive --help", code: exitUsage, says: "Run 'outboxctl dead redrive --help'"},
			{line: "stauts", code: exitUsage, says: "is it 'status'?"},
			{line: "replay plan type:placed --reason x", code: exitUsage, says: "a plan changes nothing"},
			{line: "audit log --verb bogus", code: exitUsage, says: "it is one of redrive, skip"},
			{line: redrive, code: exitUsage, says: "--reason is missing", states: "5:30"},
			{line: redrive + "--reason x", code: exitUsage, says: "--yes starts it", states: "5:30"},
			{line: redrive + "--reason x --max 29 --yes", code: exitUsage, says: "30 events, which is more than --max 29"},
			{line: "dead redrive topic:others --reason x --yes", says: "nothing meets this", states: "5:30"},
			{line: redrive + "--reason x --yes --here" + again, says: "redrive: done, 30 events", states: "1:30"},
			{line: redrive + "--reason x --yes --here" + again, says: "redrive: done, 30 events", states: "1:30"},
			{line: redrive + "--reason x --yes --here" + again, says: "this action was done before: its job is done"},
			{line: "jobs show 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e", says: "filter  topic:orders state:dead reason:rejected"},
			{line: "jobs list", says: "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"},
			{line: "jobs list --limit 1001", code: exitUsage, says: "from 1 to 1000"},
			{line: "jobs list --all", says: "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"},
			{line: "jobs show 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7f", code: exitNotFound, says: "there is no job"},
			{
				line: "jobs cancel 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --reason x", code: exitFailed,
				says: "cancel: job 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e is done",
			},
		})
	})
}

// TestManyEventsAreConfirmedByTheirNumber: --yes is not enough for more than 10,000.
func TestManyEventsAreConfirmedByTheirNumber(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 10_001)
		const discard = "dead discard type:placed --reason x --yes --detach "
		e.try(t, []jobCall{
			{line: discard, code: exitUsage, says: "confirm their number with --max 10001"},
			{line: discard + "--dry-run", says: "to start it needs --max 10001"},
			{line: discard + "--dry-run", says: "\n      10,001  placed\n"},
			{line: discard + "--max 10000 --dry-run", code: exitUsage, says: "confirm their number with --max 10001"},
			{line: discard + "--max 10000", code: exitUsage, says: "confirm their number with --max 10001"},
			{line: discard + "--max 10000", code: exitUsage, says: "or more while there come more", states: "5:10001"},
			{line: "jobs list", says: "no job is open"},
			{line: discard + "--max 10001", says: "job "},
			{line: "jobs list", says: "running"},
			{line: discard + "--max 10010", says: "job ", states: "5:10001"},
			{line: discard + "--after-seq 5000 --dry-run", says: "5,001 events, made from", states: "5:10001"},
			{line: discard + "--after-seq -1 --dry-run", code: exitUsage, says: "begin at 1"},
		})
	})
}

// TestReplayCommands: plan, start, status, pause, resume and cancel.
func TestReplayCommands(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 20)
		e.exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
		first := e.text(t, "SELECT id::text FROM {schema}.outbox_events ORDER BY seq LIMIT 1")
		e.try(t, []jobCall{
			{line: "replay plan type:placed created:<1h", says: "20 events"},
			{line: "replay plan type:placed --topic copies", says: "20 events"},
			{line: "replay plan " + first, code: exitUsage, says: "a plan is of a filter"},
			{line: "replay start type:placed --as copy --reason x", code: exitUsage, says: "redeliver or reissue"},
			{line: "replay start type:placed --as reissue --topic x --reason x", code: exitUsage, says: "--topic is for copies"},
			{
				line: "replay start " + first + " --topic copies --reason x", states: "6:20",
				says: first + " asked for, was published\nredeliver: 1 event,",
			},
		})
		action := e.text(t, "SELECT action_id::text FROM {schema}.outbox_requests")
		code, out, said := e.call(t, strings.Fields("replay start type:placed --topic copies --reason x --yes --detach")...)
		started := jobID.FindStringSubmatch(out)
		if code != 0 || started == nil {
			t.Fatalf("exit code %d\n%s%s", code, out, said)
		}
		job := started[1]
		const sent = " --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d71"
		const copies = " --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d72"
		const paused = " --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d74"
		const logged = " action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d72"
		e.try(t, []jobCall{
			{line: "replay status " + job, says: "running, but nobody works on it"},
			{line: "replay pause " + job + " --reason x", says: "is paused"},
			{line: "replay pause " + job + " --reason x", code: exitFailed, says: "is paused already"},
			{line: "replay resume " + job + " --reason x", says: "is running"},
			{line: "replay resume " + job + " --reason x", code: exitFailed, says: "is running already"},
			{line: "replay pause " + job + " --reason x" + paused, says: "is paused"},
			{line: "replay pause " + job + " --reason x" + paused, says: paused[len(" --action "):] + " (done before)\n"},
			{line: "replay resume " + job + " --reason x", says: "is running"},
			{line: "replay cancel " + job + " --reason x" + sent, says: "0 copies will not be sent"},
			{line: "replay cancel " + job + " --reason x" + sent, says: "6d71 (done before)"},
			{line: "replay cancel " + job + " --reason x", code: exitFailed, says: job + " is canceled already"},
			{line: "replay status " + job + " -o json", says: `"state": "canceled"`},
			{line: "replay status " + action, says: "copies  1 not sent yet\nwaits   no relay is alive\n"},
			{line: "replay status " + action + " -o json", says: `"open": 1`},
			{line: "jobs show " + action, code: exitNotFound, says: "there is no job"},
			{line: "topics pause copies --reason moving", says: "is paused"},
			{line: "replay status " + action, says: "waits   topic copies is paused by "},
			{line: "replay cancel " + action + " --reason x" + sent, code: exitFailed, says: "was used before"},
			{line: "replay cancel " + action + " --reason x" + copies, says: "1 copy will not be sent," + logged},
			{line: "replay cancel " + action + " --reason x" + copies, says: "0 copies will not be sent," + logged},
			{line: "replay cancel " + action + " --reason x", code: exitFailed, says: "is open: 1 canceled"},
			{line: "audit log --verb cancel -o json", says: `"action": "` + strings.TrimPrefix(logged, " action ")},
			{line: "replay status " + action, says: "copies  1 canceled"},
			{line: "replay status " + first, code: exitNotFound, says: "no action of this id"},
			{
				line: "replay start type:placed --as reissue --reason x --yes --here", says: "reissue: done, 20 events",
				states: "0:20 6:20",
			},
			{line: "events erase " + first + " --reason x --yes", says: "1"},
			{line: "replay plan type:placed", says: "of these 1 is erased: nothing is left to send, and the job passes it by"},
			{line: "replay plan type:placed -o json", says: `"erased": 1`},
		})
	})
}

// TestDeadEdit: other data, a new event, and the old one is discarded.
func TestDeadEdit(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 1)
		edit := "dead edit " + e.text(t, "SELECT id::text FROM {schema}.outbox_events") + " --data - --reason x"
		e.try(t, []jobCall{
			{line: strings.Replace(edit, "--data - ", "", 1), code: exitUsage, says: "--data is missing"},
			{line: edit, input: "[1]", code: exitUsage, says: "--data is no JSON object", states: "5:1"},
			{line: edit, input: "", code: exitUsage, says: "--data is no JSON object", states: "5:1"},
			{line: edit, input: "{\n\"a\": }", code: exitUsage, says: "at byte 8 in line 2", states: "5:1"},
			{line: edit, input: "{\"a\":\"\xff\"}", code: exitUsage, says: "--data is not UTF-8", states: "5:1"},
			{line: edit, input: `{"a":1}`, says: "done, was dead: it is issued again as", states: "0:1 7:1"},
			{
				line: edit, input: `{"a":1}`, code: exitFailed, states: "0:1 7:1",
				says: "not applicable, was discarded: it was issued again before, as ",
			},
			{line: edit, input: `{"a":1}`, code: exitFailed, says: "--again makes another", states: "0:1 7:1"},
			{line: edit + " --again", input: `{"a":1}`, says: "done, was discarded: it is issued again as ", states: "0:2 7:1"},
		})
	})
}

// TestDeadReissueMakesOneEventOfAnother: what a reissue leaves discarded is not dead any more.
func TestDeadReissueMakesOneEventOfAnother(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 2)
		first := e.text(t, "SELECT id::text FROM {schema}.outbox_events ORDER BY seq LIMIT 1")
		second := e.text(t, "SELECT id::text FROM {schema}.outbox_events ORDER BY seq DESC LIMIT 1")
		reissue := "dead reissue " + first + " --reason x"
		const again = " --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"
		for _, flag := range []string{"-o json", "--here", "--detach", "--rate 500", "--max 10000", "--dry-run"} {
			e.try(t, []jobCall{{line: reissue + " " + flag, code: exitUsage, says: " is for a filter", states: "5:2"}})
		}
		e.try(t, []jobCall{
			{line: reissue + again, says: first + " done, was dead: it is issued again as ", states: "0:1 5:1 7:1"},
			{line: reissue + again, says: first + " done before, was discarded: it is issued again as ", states: "0:1 5:1 7:1"},
			{line: reissue, code: exitFailed, says: first + " not applicable, was discarded: it was", states: "0:1 5:1 7:1"},
			{line: reissue, code: exitFailed, says: "'outboxctl replay start --as reissue' makes", states: "0:1 5:1 7:1"},
			{
				line: "dead reissue " + first + " " + second + " --reason x", code: exitFailed,
				says: "reissue: 1 of 2 events are in no state for it", states: "0:2 7:2",
			},
			{line: "replay start --as reissue " + first + " --reason x", code: exitFailed, says: "issued again before, as "},
			{line: "replay start --as reissue " + first + " --reason x --again", says: "done, was discarded", states: "0:3 7:2"},
			{line: "replay start " + first + " --reason x --again", code: exitUsage, says: "--again is for --as reissue"},
			{line: "replay start " + first + " --reason x --here", code: exitUsage, says: "--here is for a filter"},
		})
	})
}

// TestCanceledCopiesOfAJobThatHasEnded: they are ended by the action that was named, which can be sent again.
func TestCanceledCopiesOfAJobThatHasEnded(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 3)
		e.exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
		ids := []string{"01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e", "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7f"}
		for i, job := range ids {
			code, out, said := e.call(t, strings.Fields(
				"replay start type:placed --topic copies --reason x --yes --detach --rate 0 --action "+job)...)
			if code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, out, said)
			}
			// As a worker leaves it that has asked for all copies, or that is in the middle of it.
			e.exec(t, `WITH asked AS (
					INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor, reason)
					SELECT $1::text::uuid, 'redeliver', id, 'ann', 'x' FROM {schema}.outbox_events)
				INSERT INTO {schema}.outbox_requests (action_id, lane, event_seq, event_id, topic)
				SELECT $1::text::uuid, lane, seq, id, 'copies' FROM {schema}.outbox_events`, job)
			if i == 0 {
				e.exec(t, `UPDATE {schema}.outbox_jobs SET state = 'done', ended_at = now(), done = 3
					WHERE id = $1::text::uuid`, job)
			}
		}
		const action = "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d71"
		done := "jobs cancel " + ids[0] + " --reason x"
		running := "jobs cancel " + ids[1] + " --reason x"
		e.try(t, []jobCall{
			{line: done + " --action " + action, says: "cancel: 3 copies will not be sent, action " + action + "\n"},
			{line: done + " --action " + action, says: "cancel: 0 copies will not be sent, action " + action + "\n"},
			{line: done, code: exitFailed, says: "cancel: job " + ids[0] + " is done"},
			{line: running, says: "is canceled, action "},
			{line: running, code: exitFailed, says: "cancel: job " + ids[1] + " is canceled"},
			{line: "jobs show " + ids[1], says: "3 canceled"},
		})
	})
}

// TestAPlanThatTookTooLongStartsNothing: and says so, also where it had met nothing yet.
func TestAPlanThatTookTooLongStartsNothing(t *testing.T) {
	t.Parallel()
	for _, plan := range []operator.JobPlan{{}, {Events: 3}} {
		err := (&job{yes: true}).confirm(t.Context(), strings.NewReader(""), t.Logf, plan)
		if nothingMeant(plan) || err == nil || !strings.Contains(err.Error(), "--after-seq") {
			t.Errorf("%+v: %v", plan, err)
		}
	}
	if !nothingMeant(operator.JobPlan{Complete: true}) || nothingMeant(operator.JobPlan{Complete: true, Events: 1}) {
		t.Error("a plan that has looked at all says what there is")
	}
}

// TestHereSaysHowAJobGoesOn: where an error has ended the command and not the job.
func TestHereSaysHowAJobGoesOn(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 1)
		e.exec(t, `CREATE FUNCTION {schema}.away() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'away' USING ERRCODE = '08006'; END $$`)
		e.exec(t, `CREATE TRIGGER away BEFORE UPDATE ON {schema}.outbox_events EXECUTE FUNCTION {schema}.away()`)
		e.try(t, []jobCall{{
			line: "dead discard type:placed --reason x --yes --here --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e",
			code: exitFailed, says: "jobs work 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e", states: "5:1",
		}})
	})
}
