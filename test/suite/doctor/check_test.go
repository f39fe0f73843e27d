package doctor

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// check asks as the viewer.
func (e *env) check(args ...string) (code int, stdout, stderr string) {
	e.t.Helper()
	return e.run(pgtest.As(e.t, e.url, e.roles["viewer"]), "", filepath.Join(e.bin, "outboxctl"),
		append([]string{"check", "--schema", e.schema, "--timeout", "2m"}, args...)...)
}

// TestCheck: each number that is beyond its limit is the state, with the exit code that Nagios prescribes.
func TestCheck(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		want := func(wantCode int, pattern string, args ...string) {
			t.Helper()
			if code, stdout, stderr := e.check(args...); code != wantCode || !matches(pattern, stdout) || stderr != "" {
				t.Errorf("%q: exit code %d, want %d and %s\n%s%s", args, code, wantCode, pattern, stdout, stderr)
			}
		}
		const patient = "--warn-age=1h"
		want(0, `^OUTBOX OK - all is well \| age=[\d.]+s;3600;600;0 pending=20;;;0 .* dead=0;0;100;0 .* relays=1;1:;1:;0 `+
			`unheld=0;0;16;0 paused=0;0;;0 retention_halted=0;0;;0 failing=0;0;;0 restored=0;;0;0\n$`, patient)
		want(0, `(?s)posthaste_check_state\{check="age"\} 0\n.*posthaste_check_value\{check="pending"\} 20\n.*`+
			`posthaste_check_worst_state 0\n$`, patient, "--format", "prometheus")
		want(1, `^OUTBOX WARNING - WARNING: 20 events are ready \|`, patient, "--warn-pending", "19")
		want(2, `^OUTBOX CRITICAL - CRITICAL: 20 events are ready \|`, patient, "--warn-pending", "9",
			"--crit-pending", "19")
		want(2, `^OUTBOX CRITICAL - CRITICAL: the oldest event that is ready is `, "--crit-age", "0s")
		want(1, `1 relays are alive`, patient, "--warn-relays", "2")

		e.exec("SELECT {schema}.outbox_pause('ada', 'a | b', 'topic', 'orders')")
		e.exec(`INSERT INTO {schema}.outbox_topics (relay, topic, paused, error)
			SELECT id, 'mails|x', true, 'no such topic' FROM {schema}.outbox_relays`)
		want(1, `^OUTBOX WARNING - WARNING: operators have paused 1 things; WARNING: publishing fails to mails/x \|`,
			patient)
		want(2, `paused 1 things`, patient, "--crit-paused", "0")
		e.exec("SELECT {schema}.outbox_resume('ada', 'over', 'topic', 'orders')")
		e.exec("DELETE FROM {schema}.outbox_topics")
		excuses(e, want)
		e.exec("SELECT {schema}.outbox_pause('ada', 'a | b', 'topic', 'orders')")
		e.exec("UPDATE {schema}.outbox_events SET state = 5 WHERE seq = 1")
		e.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
			aggregate_type, aggregate_id, error_reason, payload_json) SELECT seq, id, created_at, 3, false, namespace,
			event_type, aggregate_type, aggregate_id, 'max_attempts', payload_json FROM {schema}.outbox_events WHERE seq = 1`)
		want(1, `WARNING: 1 events are dead`, patient)
		want(2, `CRITICAL: 1 events are dead`, patient, "--crit-dead", "0")
		e.exec(leases.Expire, "steady")
		want(2, `CRITICAL: 0 relays are alive; CRITICAL: no live relay holds 64 lanes`, patient)

		code, stdout, _ := e.check("--format", "json")
		var result struct {
			State  string
			Checks []struct{ Check, State string }
		}
		if err := json.Unmarshal([]byte(stdout), &result); err != nil || code != 2 || result.State != "critical" ||
			len(result.Checks) != 12 || result.Checks[0].Check != "schema" {
			t.Errorf("exit code %d, %v: %s", code, err, stdout)
		}
	})
}

// excuses: what is paused or fails is no critical age, and excuses nothing else.
func excuses(e *env, want func(code int, pattern string, args ...string)) {
	const excused = `^OUTBOX WARNING - WARNING: the oldest event that is ready is \S+ old, which is paused or whose ` +
		`topic fails;`
	const critical = `^OUTBOX CRITICAL - CRITICAL: the oldest event that is ready is `
	pause := func(scope, name string) { e.exec("SELECT {schema}.outbox_pause('ada', 'x', $1, $2)", scope, name) }
	resume := func(scope, name string) { e.exec("SELECT {schema}.outbox_resume('ada', 'x', $1, $2)", scope, name) }
	fail := func(topic string) {
		e.exec(`INSERT INTO {schema}.outbox_topics (relay, topic, paused, error)
			SELECT id, $1, true, 'no such topic' FROM {schema}.outbox_relays`, topic)
	}
	e.exec(`INSERT INTO {schema}.outbox_known (relay, event_type, topic)
		SELECT r.id, t.* FROM {schema}.outbox_relays r, (VALUES ('order_created', 'orders'), ('mail', 'mails')) t`)
	for _, scope := range [][2]string{{"all", ""}, {"topic", "orders"}, {"type", "order_created"}} {
		pause(scope[0], scope[1])
		want(1, excused, "--crit-age", "0s")
		resume(scope[0], scope[1])
	}
	pause("topic", "mails")
	pause("type", "mail")
	fail("mails")
	want(2, critical, "--crit-age", "0s")
	fail("orders")
	want(1, excused, "--crit-age", "0s")
	e.exec("DELETE FROM {schema}.outbox_topics")
	// One of another topic among them, and one that is held.
	pause("topic", "orders")
	e.exec("SELECT {schema}.outbox_emit('mail', 'mail', '1', '{}')")
	resume("topic", "mails")
	want(1, excused, "--crit-age", "0s")
	resume("type", "mail")
	want(2, critical+`\S+ old, and of those that are not paused and whose topic does not fail \d\S*;`, "--crit-age", "0s")
	const retrying = `(WARNING|CRITICAL): 1 events are retried`
	e.exec("UPDATE {schema}.outbox_events SET state = 1 WHERE seq = 2")
	e.exec(`INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
		SELECT lane, seq, 1, now() + interval '1 hour', namespace, event_type, aggregate_type, aggregate_id
		  FROM {schema}.outbox_events WHERE seq = 2`)
	want(1, retrying, "--warn-age=1h", "--crit-held-age", "0s")
	resume("topic", "orders")
	want(2, retrying, "--warn-age=1h", "--crit-held-age", "0s")
	e.exec("DELETE FROM {schema}.outbox_held")
	e.exec("UPDATE {schema}.outbox_events SET state = 0 WHERE seq = 2")
}

// TestCheckThatCannotKnow exits with 3.
func TestCheckThatCannotKnow(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	outboxctl := filepath.Join(e.bin, "outboxctl")
	code, stdout, _ := e.run("postgres://nobody@127.0.0.1:1/db", "", outboxctl, "check")
	if code != 3 || !strings.HasPrefix(stdout, "OUTBOX UNKNOWN - UNKNOWN: cannot connect to the database") {
		t.Errorf("nobody answers: exit code %d: %s", code, stdout)
	}
	code, stdout, _ = e.run(pgtest.As(t, e.url, e.roles["stranger"]), "", outboxctl, "check", "--schema", e.schema)
	if code != 3 || !strings.Contains(stdout, "outboxctl grant viewer ROLE") {
		t.Errorf("a stranger: exit code %d: %s", code, stdout)
	}
	if code, stdout, _ = e.run(e.url, "", outboxctl, "check", "--schema", "nosuch"); code != 2 ||
		!strings.Contains(stdout, "there is no outbox in schema nosuch") {
		t.Errorf("no outbox: exit code %d: %s", code, stdout)
	}
	if code, _, stderr := e.run(e.url, "", outboxctl, "check", "--format", "xml"); code != 3 ||
		!strings.Contains(stderr, "xml") {
		t.Errorf("wrong use: exit code %d: %s", code, stderr)
	}
}
