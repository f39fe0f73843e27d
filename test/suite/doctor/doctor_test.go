package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/operator/doctor"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// A fault is planted, found, and ended by the fix that is printed.
type fault struct {
	code  string
	name  string   // tells it from others with the same code
	begin []string // SQL, each by itself
	hold  []string // SQL of a session that stays open
	as    string   // the part that runs the doctor; empty: a superuser
	args  []string
	after func(e *env) // makes good what the fix takes away beside the fault
}

// grow writes events until a plan counts: 5,000 of 1 kB.
const grow = `SELECT {schema}.outbox_emit('order_created', 'order', i::text,
		json_build_object('note', repeat('-', 900)))
	FROM generate_series(1, 5000) i`

// faults are planted one after the other in one outbox: the fix of each leaves it well.
var faults = []fault{
	{code: "migration_unrecorded", begin: []string{"DELETE FROM {schema}.outbox_schema_version WHERE version_id IN " +
		"(3, 4)"}},
	{code: "trigger_missing", begin: []string{"DROP TRIGGER outbox_events_keep_open ON {schema}.outbox_events"}},
	{code: "trigger_missing", name: "of facts", begin: []string{
		"DROP TRIGGER outbox_events_append_only ON {schema}.outbox_events",
	}},
	{code: "trigger_missing", name: "of payloads", begin: []string{
		"DROP TRIGGER outbox_events_erase_only ON {schema}.outbox_events",
	}},
	{code: "trigger_disabled", begin: []string{"ALTER TABLE {schema}.outbox_dlq DISABLE TRIGGER outbox_dlq_append_only"}},
	{code: "function_unpinned", begin: []string{
		"ALTER FUNCTION {schema}.outbox_act(text, text, text, uuid[], uuid) RESET search_path",
	}},
	{code: "schema_open", begin: []string{"GRANT CREATE ON SCHEMA {schema} TO PUBLIC"}},
	{code: "schema_unreadable", as: "stranger"},
	{
		code: "part_incomplete", as: "relay", args: []string{"--part", "relay"},
		begin: []string{"REVOKE SELECT ON {schema}.outbox_pauses FROM {relay}"},
	},
	{code: "grants_differ", name: "too little", begin: []string{"REVOKE DELETE ON {schema}.outbox_dedupe FROM {janitor}"}},
	{code: "grants_differ", name: "too much", begin: []string{"GRANT SELECT ON {schema}.outbox_events TO {viewer}"}},
	{code: "grants_differ", name: "everybody", begin: []string{"GRANT SELECT ON {schema}.outbox_dlq TO PUBLIC"}},
	{
		code: "rows_hidden", begin: []string{"ALTER TABLE {schema}.outbox_events ENABLE ROW LEVEL SECURITY"},
		after: func(e *env) {
			e.exec("ALTER TABLE {schema}.outbox_events DISABLE ROW LEVEL SECURITY")
		},
	},
	{code: "index_missing", begin: []string{"DROP INDEX {schema}.outbox_events_id"}},
	{code: "index_missing", name: "the key", begin: []string{
		"ALTER TABLE {schema}.outbox_events DROP CONSTRAINT outbox_events_pkey",
	}},
	{code: "index_invalid", begin: []string{
		`UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{schema}.outbox_held_due'::regclass`,
	}},
	{code: "index_on_delivery", begin: []string{"CREATE INDEX by_time ON {schema}.outbox_events (published_at)"}},
	{code: "index_on_delivery", name: "in a predicate", begin: []string{
		`CREATE INDEX "ready only" ON {schema}.outbox_events (id) WHERE state = 0`,
	}},
	{code: "index_costly", begin: []string{"CREATE INDEX lower_type ON {schema}.outbox_events (lower(event_type))"}},
	{code: "check_costly", begin: []string{
		"ALTER TABLE {schema}.outbox_events ADD CONSTRAINT typed CHECK (event_type <> '')",
	}},
	{code: "table_unlogged", begin: []string{"ALTER TABLE {schema}.outbox_events SET UNLOGGED"}},
	{code: "table_settings", begin: []string{"ALTER TABLE {schema}.outbox_events RESET (fillfactor)"}},
	{code: "table_settings", name: "autovacuum", begin: []string{
		"ALTER TABLE {schema}.outbox_events SET (autovacuum_vacuum_scale_factor = 0.2)",
	}},
	{code: "autovacuum_off", begin: []string{"ALTER TABLE {schema}.outbox_held SET (autovacuum_enabled = false)"}},
	{code: "sequence_cached", begin: []string{"ALTER SEQUENCE {schema}.outbox_events_seq_seq CACHE 50"}},
	{
		code: "sequence_behind", begin: []string{`SELECT setval('{schema}.outbox_events_seq_seq', 3)`},
		after: func(e *env) { e.staff() },
	},
	{code: "commit_not_durable", begin: []string{"ALTER ROLE {producer} SET synchronous_commit = off"}},
	{code: "triggers_off", begin: []string{"ALTER ROLE {relay} IN DATABASE {database} SET session_replication_role " +
		"= replica"}},
	{code: "read_only_role", begin: []string{"ALTER DATABASE {database} SET default_transaction_read_only = on"}},
	{code: "planner_off", begin: []string{"ALTER ROLE {relay} SET enable_indexscan = off"}},
	{code: "planner_off", name: "of the database", begin: []string{
		"ALTER DATABASE {database} SET enable_indexscan = off",
	}},
	{code: "plan_bad", begin: []string{grow, "ALTER DATABASE {database} SET random_page_cost = 1000000"}},
	{code: "old_writer", hold: []string{"BEGIN", "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')"}},
	{code: "old_snapshot", hold: []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1 FROM {schema}.outbox_meta"}},
	{code: "old_prepared", hold: []string{
		"BEGIN", "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')", "PREPARE TRANSACTION '{database}''s'",
	}},
	{code: "relay_dead", begin: []string{
		`INSERT INTO {schema}.outbox_relays (id, token, name, started_at)
		VALUES (gen_random_uuid(), gen_random_uuid(), 'gone', now() - interval '2 hours')`,
		`INSERT INTO {schema}.outbox_beats (relay, number, until)
		SELECT id, 1, now() - interval '1 hour' FROM {schema}.outbox_relays WHERE name = 'gone'`,
	}},
	{code: "restored", begin: []string{"UPDATE {schema}.outbox_identity SET system_identifier = 1"}},
	{code: "restored", name: "to a point in time", begin: []string{
		"UPDATE {schema}.outbox_identity SET timeline = 999, seen_at = now() - interval '1 day'",
	}},
	{code: "paused", begin: []string{"SELECT {schema}.outbox_pause('ada', 'the broker moves', 'topic', 'or ders')"}},
	{code: "paused", name: "everything", begin: []string{"SELECT {schema}.outbox_pause('ada', 'the broker moves', " +
		"'all')"}},
	{code: "limited", begin: []string{"SELECT {schema}.outbox_limit('ada', 'consumers come back', 'or ders', 0.5)"}},
	{code: "job_idle", begin: []string{
		"SELECT {schema}.outbox_start_job('ada', 'they go now', 'redrive', 'state:dead', 10, 0)",
		"UPDATE {schema}.outbox_jobs SET changed_at = now() - interval '1 hour'",
	}},
	{code: "dead_blocking", begin: []string{
		"UPDATE {schema}.outbox_events SET state = 1, attempt_count = 10, last_error = 'too odd' WHERE seq <= 2",
		`INSERT INTO {schema}.outbox_held (lane, seq, kind, namespace, event_type, aggregate_type, aggregate_id)
		SELECT lane, seq, 4, namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_events WHERE seq <= 2`,
	}},
	{code: "retention_halted", begin: []string{
		`UPDATE {schema}.outbox_retention SET halted_at = now(), ran_at = now() - interval '20 days', cut_off = now() -
		interval '60 days', halt_reason = 'the cut-off would move by 720h. If this is right, set Confirmed to '
		|| to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') WHERE kind = 'published'`,
	}},
	{code: "retention_stale", begin: []string{
		"UPDATE {schema}.outbox_retention SET ran_at = now() - interval '3 days', cut_off = now() - interval '33 days'",
	}},
}

// TestDoctorFindsEachFault, and its fix, applied word by word, ends it.
func TestDoctorFindsEachFault(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		e.mustBeWell()
		found := map[string]bool{}
		for _, f := range faults {
			t.Run(f.code+"/"+f.name, func(t *testing.T) {
				(&env{
					t: t, bin: e.bin, url: e.url, database: e.database, schema: e.schema, roles: e.roles, admin: e.admin,
				}).inflict(f)
			})
			found[f.code] = true
		}
		t.Attr("doctor_faults_"+e.server, strconv.Itoa(len(faults)))
		t.Logf("faults=%d codes=%d", len(faults), len(found))
		if len(found) < 18 {
			t.Errorf("only %d kinds of faults were planted", len(found))
		}
	})
}

// TestDoctorOfATableThatGrows: it is well as long as it is new, when thousands of events are in it that nobody has
// counted, or that were none when they were counted, and when they are counted.
func TestDoctorOfATableThatGrows(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"never": "", "when empty": "ANALYZE {schema}.outbox_events"} {
		t.Run("counted "+name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, e *env) {
				e.exec("SET session_replication_role = replica; TRUNCATE {schema}.outbox_events; RESET session_replication_role")
				for _, step := range []string{before, grow, grow, "ANALYZE {schema}.outbox_events"} {
					if step == "" {
						continue
					}
					e.exec(step)
					if left := e.again(e.url, fault{}); len(left.Findings) > 0 {
						t.Errorf("after %q, %q: %+v", before, step, left.Findings)
					}
				}
				e.mustBeWell()
			})
		})
	}
}

// inflict plants one fault, and has it found and ended.
func (e *env) inflict(f fault) {
	e.t.Helper()
	address := e.url
	if f.as != "" {
		address = pgtest.As(e.t, e.url, e.roles[f.as])
	}
	for _, statement := range f.begin {
		e.exec(statement)
	}
	if f.hold != nil {
		e.open(f.hold...)
	}
	report := e.doctor(address, f.args...)
	if got := codes(report); !slices.Equal(got, []string{f.code}) {
		e.t.Errorf("found %q, want %s: %+v", got, f.code, report)
	}
	for _, finding := range report.Findings {
		if finding.Problem == "" || finding.Cause == "" || finding.Stage == "" {
			e.t.Errorf("the finding says too little: %+v", finding)
		}
		e.apply(finding)
	}
	if f.after != nil {
		f.after(e)
	}
	if left := e.again(address, f); len(left.Findings) > 0 {
		e.t.Errorf("after the fix of %+v: %+v", report.Findings, left.Findings)
	}
}

// again looks once more, without a process.
func (e *env) again(address string, f fault) doctor.Report {
	e.t.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		e.t.Fatal(err)
	}
	settings := doctor.Config{Database: config, Schema: e.schema, OldTransaction: time.Millisecond}
	if slices.Contains(f.args, "--part") {
		settings.Part = f.as
	}
	if slices.Contains(f.args, "--slot-megabytes") {
		settings.SlotBytes = 1
	}
	return doctor.Run(e.t.Context(), settings)
}

// TestDoctorOfTheSchema: there is no outbox, there is an old one, and a fix makes it one that only lacks a relay.
func TestDoctorOfTheSchema(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		e.schema = "it's new"
		for _, step := range []struct{ code, before string }{{"no_outbox", ""}, {"schema_old", "7"}} {
			if step.before != "" {
				if code, _, stderr := e.run(e.url, "", filepath.Join(e.bin, "outboxctl"), "migrate", "down", "--target",
					step.before, "--schema",
					e.schema); code != 0 {
					t.Fatal(stderr)
				}
			}
			report := e.doctor(e.url)
			if got := codes(report); !slices.Equal(got, []string{step.code}) {
				t.Fatalf("found %q, want %s", got, step.code)
			}
			e.apply(report.Findings[0])
			if got := codes(e.doctor(e.url)); !slices.Equal(got, []string{"no_relay"}) {
				t.Errorf("after the fix: %q", got)
			}
		}
	})
}

// TestDoctorEndsWhereATableIsLocked: a migration that hangs must not have the doctor hang.
func TestDoctorEndsWhereATableIsLocked(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	e.open("BEGIN", "LOCK TABLE {schema}.outbox_meta, {schema}.outbox_schema_version")
	config, err := pgx.ParseConfig(e.url)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	report := doctor.Run(ctx, doctor.Config{
		Database: config, Schema: e.schema, OldTransaction: time.Millisecond, Timeout: 5 * time.Second,
	})
	said := fmt.Sprintf("%+v", report)
	for _, words := range []string{
		"the schema's version: no answer in time: somebody holds a lock", "version table: no answer", "FROM pg_locks",
	} {
		if !strings.Contains(said, words) {
			t.Errorf("it does not say %q: %s", words, said)
		}
	}
	if got := codes(report); ctx.Err() != nil || !slices.Equal(got, []string{"not_examined"}) {
		t.Errorf("found %q, %s, %v", got, said, ctx.Err())
	}
}

// TestDoctorOnTheWay: each step to the database that fails is told as what it is, and ends the others.
func TestDoctorOnTheWay(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	e.variable = []string{"POSTHASTE_INSECURE_ALLOW=database"}
	for _, way := range []struct{ code, address string }{
		{"name_unknown", "postgres://postgres@nosuch.invalid/db"},
		{"port_closed", "postgres://postgres@127.0.0.1:1/db"},
		{"port_closed", "postgres://postgres@/db?host=" + t.TempDir()},
		{"tls_failed", withQuery(t, e.url, "sslmode", "verify-full")},
		{"login_failed", pgtest.As(t, e.url, "nobody_of_this_name")},
		{"database_missing", withPath(t, e.url, "/nosuch_database")},
		// Here TLS is tried first, which the server has not.
		{"login_failed", withQuery(t, pgtest.As(t, e.url, "nobody_of_this_name"), "sslmode", "prefer")},
		{"database_missing", withQuery(t, withPath(t, e.url, "/nosuch_database"), "sslmode", "prefer")},
		{"connect_failed", withQuery(t, withQuery(t, e.url, "sslmode", "prefer"), "no_such_setting", "1")},
	} {
		report := e.doctor(way.address)
		if got := codes(report); !slices.Equal(got, []string{way.code}) || report.Findings[0].Advice == "" {
			t.Errorf("%s: found %q, want %s: %+v", way.address, got, way.code, report)
		}
	}
	if report := e.doctor(e.url, "--clock-tolerance", "1h"); len(report.Findings) > 0 {
		t.Errorf("got %+v", report)
	}
}

// TestDoctorOfTheFleet: what no statement ends, and what does.
func TestDoctorOfTheFleet(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		for _, step := range []struct{ want, begin, end string }{
			{
				"lanes_unheld", leases.Steal, leases.Return,
			},
			{
				"topic_failing", `INSERT INTO {schema}.outbox_topics (relay, topic, paused, error)
					SELECT id, 'orders', true, 'no such topic' FROM {schema}.outbox_relays`, "DELETE FROM {schema}.outbox_topics",
			},
			{
				"type_unknown", "UPDATE {schema}.outbox_lanes SET needs = '{order_lost}' WHERE lane = 7",
				"UPDATE {schema}.outbox_lanes SET needs = '{}'",
			},
		} {
			if step.begin == leases.Steal {
				e.exec(step.begin, []int16{1, 2, 3, 9})
			} else {
				e.exec(step.begin)
			}
			report := e.doctor(e.url)
			if got := codes(report); !slices.Equal(got, []string{step.want}) || report.Findings[0].Advice == "" {
				t.Errorf("found %q, want %s: %+v", got, step.want, report)
			}
			e.exec(step.end)
			if step.want == "lanes_unheld" {
				e.exec("UPDATE {schema}.outbox_relays SET ended_at = now(), lanes = '{}' WHERE ended_at IS NULL")
				if got := fmt.Sprint(codes(e.doctor(e.url))); got != "[no_relay]" {
					t.Errorf("without a relay: %s", got)
				}
				e.staff()
			}
			if left := e.doctor(e.url); len(left.Findings) > 0 {
				t.Errorf("%s: left %+v", step.want, left.Findings)
			}
		}
	})
}
