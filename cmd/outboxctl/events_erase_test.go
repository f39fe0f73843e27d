package main

import (
	"strings"
	"testing"
	"time"
)

// TestEventsErase: it counts unless it is told to do it, wants a reason, and says what it kept.
func TestEventsErase(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		event := func(aggregate string, state int) (id string) {
			id = e.text(t, "SELECT id::text FROM {schema}.outbox_emit('placed', 'customer', $1, '{\"name\":\"secret\"}')",
				aggregate)
			e.exec(t, "UPDATE {schema}.outbox_events SET state = $2 WHERE id = $1::text::uuid", id, state)
			return id
		}
		published, ready := event("1", 6), event("1", 0)
		event("1", 7)
		other := event("2", 6)
		e.exec(t, `INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace,
				event_type, aggregate_type, aggregate_id, error_reason, payload_json)
			SELECT 0, gen_random_uuid(), now(), 3, false, 'default', 'placed', 'customer', '3', 'max_attempts', '{}'`)
		secrets := func() string {
			return e.text(t, `SELECT count(*)::text FROM {schema}.outbox_events WHERE payload_json::text LIKE '%secret%'`)
		}
		viewer := e.as(t, "viewer")
		e.exec(t, "SELECT {schema}.outbox_grant('viewer', $1)", viewer.role(t))
		for _, call := range []struct {
			env       *env
			args      string
			code      int
			says      []string
			left      string
			complains string
		}{
			{e, "", 2, nil, "4", "erase takes ids of events, or a filter"},
			{e, "aggregate:customer/1 --yes", 2, nil, "4", "--reason is missing"},
			{e, "aggregate:customer/1 --max 0", 2, nil, "4", "--max must be at least 1"},
			{e, "typ:customer", 2, nil, "4", "did you mean type?"},
			{e, "aggregate:customer/1 --max 1", 1, nil, "4", "more than 1 events would be erased; ask for fewer"},
			{e, "aggregate:customer/1 --max 2", 0, []string{"would erase 2 events"}, "4", ""},
			{viewer, "aggregate:customer/1", 0, []string{
				"would erase 2 events: 1 discarded, 1 published", "kept 1: 1 ready", "nothing is changed: do it with --yes",
			}, "4", ""},
			{viewer, "aggregate:customer/1 --yes --reason why", 4, nil, "4", "outboxctl grant operator"},
			{e, published + " " + ready + " -o json", 0, []string{
				`"dryRun": true`, `"events": 1`, `"published": 1`, `"ready": 1`,
			}, "4", ""},
			{e, "aggregate:customer/3", 0, []string{"would erase 1 event: 1 deleted"}, "4", ""},
			{e, "aggregate:customer/3 state:discarded published:<1h", 0, []string{
				"would erase 0 events\ndead letters of events that retention has deleted were not looked at: they have no " +
					"state, published\n",
			}, "4", ""},
			{e, "aggregate:customer/1 --yes --reason why", 0, []string{
				"erased 2 events: 1 discarded, 1 published", "kept 1: 1 ready", "action ",
			}, "2", ""},
			{e, ready + " " + other + " --yes --reason why -o json", 1, []string{
				`"events": 1`, `"action": "`,
			}, "1", "1 event is in no state for it"},
			{e, "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d71 --yes --reason x", 3, nil, "1", "erase: there is no such event"},
			{e, published + " --yes --reason why", 0, []string{"erased 0 events", "kept 1: 1 erased before"}, "1", ""},
		} {
			code, stdout, stderr := call.env.call(t, append([]string{"events", "erase"}, strings.Fields(call.args)...)...)
			if code != call.code || secrets() != call.left || !strings.Contains(stderr, call.complains) {
				t.Errorf("%s: ended with %d, %s payloads are left\n%s%s", call.args, code, secrets(), stdout, stderr)
			}
			for _, want := range call.says {
				if !strings.Contains(stdout, want) {
					t.Errorf("%s does not say %q:\n%s", call.args, want, stdout)
				}
			}
		}
		code, _, said := viewer.call(t, "events", "erase", "data.x:1", "--yes", "--reason", "x")
		if code != exitNotLetIn || strings.Count(said, "GRANT SELECT") != 1 || strings.Contains(said, "grant operator") {
			t.Errorf("a filter that reads payloads: ended with %d\n%s", code, said)
		}
		if _, stdout, _ := e.call(t, "events", "erase", published, "--yes", "--reason", "why"); strings.Contains(stdout,
			"action") {
			t.Errorf("where all was erased before there is no action:\n%s", stdout)
		}
		late := event("4", 6)
		e.exec(t, `INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor, reason)
			SELECT '01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d71', 'redrive', gen_random_uuid(), 'ann', 'x'`)
		for says, from := range map[string]*env{"used before, for a redrive": e, "outboxctl grant operator": viewer} {
			code, _, said := from.call(t, strings.Fields(
				"events erase "+late+" --yes --reason x --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d71")...)
			if code == 0 || !strings.Contains(said, says) || strings.Contains(said, "goes on") {
				t.Errorf("an erasure that fails again the next time: ended with %d\n%s", code, said)
			}
		}
		e.exec(t, "DELETE FROM {schema}.outbox_actions WHERE verb = 'redrive'")
		if got := e.text(t, "SELECT string_agg(DISTINCT verb || ' ' || reason, ',') FROM {schema}.outbox_actions"); got !=
			"erase why" {
			t.Errorf("the log has %s", got)
		}
		if _, stdout, stderr := e.call(t, "events", "list", "aggregate:customer/1"); strings.Count(stdout, ", erased") != 2 {
			t.Errorf("the list is\n%s%s", stdout, stderr)
		}
		if _, stdout, _ := e.call(t, "events", "get", published); !strings.Contains(stdout, "a hash of what was there") {
			t.Errorf("the event is\n%s", stdout)
		}
		if _, stdout, _ := e.call(t, "events", "export", "id:"+published); !strings.Contains(stdout, `"erased":true`) ||
			!strings.Contains(stdout, `"payloadSha256":"`) {
			t.Errorf("the export is\n%s", stdout)
		}
	})
}

// TestALargeErasure: what is kept does not count for --max, and one that was cut off goes on as it was confirmed.
func TestALargeErasure(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state)
			SELECT g.id, 'placed', 'order', '1', json_build_object('eventId', g.id), CASE WHEN i > 10002 THEN 0 ELSE 6 END
			  FROM (SELECT i, {schema}.outbox_uuid7() AS id FROM generate_series(1, 10003) i OFFSET 0) g`)
		const erase = "events erase type:placed --yes --reason x"
		const again = " --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"
		first := e.text(t, "SELECT id::text FROM {schema}.outbox_events ORDER BY seq LIMIT 1")
		for _, call := range []struct {
			line string
			code int
			says string
		}{
			{erase, exitFailed, "more than 10000 events would be erased"},
			{erase + " --max 10003", exitFailed, "say so: --max 10002"},
			// One of them is done when the rest of the command is cut off.
			{"events erase " + first + " --yes --reason x" + again, 0, "erased 1 event"},
			{erase + " --max 10002", exitFailed, "say so: --max 10001"},
			{erase + " --max 10002" + again, 0, "erased 10001 events: 10001 published"},
			{erase + " --max 10002" + again, 0, "erased 0 events"},
		} {
			code, stdout, stderr := e.call(t, strings.Fields(call.line)...)
			if code != call.code || !strings.Contains(stdout+stderr, call.says) {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", call.line, code, call.code, call.says, stdout, stderr)
			}
		}
	})
}

// TestProgress: how far, how fast, and how long still.
func TestProgress(t *testing.T) {
	t.Parallel()
	if got := progress(500, 2000, 5*time.Second); got != "500 of 2000, 100/s, 15s left" {
		t.Error(got)
	}
}
