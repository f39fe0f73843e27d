package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

// TestFaultH9SessionSettings: the stored payload does not depend on the caller's time zone, date style or
// any other setting of the session.
func TestFaultH9SessionSettings(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		settings := 0
		for _, zone := range []string{
			"UTC", "Pacific/Kiritimati", "America/St_Johns", "Asia/Kathmandu", "<+1337>-13:37", "Europe/Berlin",
		} {
			for _, others := range [][]string{
				{"DateStyle=ISO, YMD"},
				{"DateStyle=German, DMY", "IntervalStyle=sql_standard"},
				{"DateStyle=SQL, DMY", "bytea_output=escape", "extra_float_digits=-15"},
				{"DateStyle=Postgres, MDY", "lc_time=C", "backslash_quote=on"},
				{"standard_conforming_strings=off", "escape_string_warning=off"},
			} {
				conn := connect(t, db.URL)
				set(t, conn, append(others, "TimeZone="+zone)...)
				checkEmit(t, db, conn, fmt.Sprint(zone, others))
				settings++
			}
		}
		figure(t, "session_settings_"+db.Name, settings)
	})
}

func set(t testing.TB, conn *pgx.Conn, settings ...string) {
	t.Helper()
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		if _, err := conn.Exec(t.Context(), "SELECT set_config($1, $2, false)", name, value); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
	}
}

// checkEmit emits at a given time and at the present, and twice with one key.
func checkEmit(t testing.TB, db *pgtest.DB, conn *pgx.Conn, session string) {
	t.Helper()
	// A string with an escaped quote and brackets: whoever misreads backslashes counts them.
	const data = `{"a": "b\\c\"[[[", "n": 1.50}`
	payload := func(arguments string) (text, id string) {
		t.Helper()
		err := conn.QueryRow(t.Context(),
			db.SQL("SELECT id::text FROM {schema}.outbox_emit('order_created', 'order', '1', $1"+arguments+")"), data).Scan(&id)
		if err != nil {
			t.Fatalf("%s: %v", session, err)
		}
		return column(t, db.Pool, db.SQL("SELECT payload_json::text FROM {schema}.outbox_events WHERE id = $1"), id)[0], id
	}
	got, id := payload(", occurred_at => '2026-03-04T05:06:07.123456Z'::timestamptz")
	if !strings.HasPrefix(got, `{"version":1,"eventId":"`+id+`","occurredAt":"2026-03-04T05:06:07.123456Z","data":`+data) {
		t.Errorf("%s: %s", session, got)
	}
	got, _ = payload("")
	_, rest, _ := strings.Cut(got, `"occurredAt":"`)
	stamp, _, _ := strings.Cut(rest, `"`)
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", stamp)
	if age := time.Since(at).Abs(); err != nil || age > time.Hour {
		t.Errorf("%s: occurredAt %q is %s off (%v)", session, stamp, age, err)
	}
	// The key was used in other sessions, with the same content.
	if _, id := payload(", dedupe_key => 'session'"); id == "" {
		t.Errorf("%s: no id", session)
	}
	// By hand: the trigger reads the rules as any other session does.
	insert := func(id, kind string) string {
		_, err := conn.Exec(t.Context(), db.SQL("INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, "+
			"aggregate_id, payload_json) VALUES ($1, 'order_created', $2, '1', $3)"), id, kind, envelope(id, 0))
		return pgtest.SQLState(err)
	}
	if good, bad := insert(id, "order"), insert(id, "or\\der"); good != "" || bad != "23514" {
		t.Errorf("%s: by hand %q, with a wrong name %q", session, good, bad)
	}
}

// TestHostileSearchPath: whatever a caller puts into its path, in a schema or in temporary tables, our
// functions and triggers use our tables.
func TestHostileSearchPath(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		m := newMatrix(t, db)
		for _, part := range []string{"producer", "janitor", "operator"} {
			evil := emptySchema(t, db.Server, "evil")
			db.Exec(t, "CREATE SCHEMA "+quote(evil)+" AUTHORIZATION "+quote(m.roles[part]))
			conn := connect(t, pgtest.As(t, db.URL, m.roles[part]))
			shadowNames(t, conn, evil)
			for _, path := range []string{
				"pg_temp, " + evil, evil + ", pg_catalog", evil + ", pg_catalog, " + quote(db.Schema), "pg_temp, pg_catalog",
			} {
				if _, err := conn.Exec(t.Context(), "SET search_path = "+path); err != nil {
					t.Fatal(err)
				}
				callAll(t, m, conn, part, path)
			}
			for _, table := range []string{
				evil + ".outbox_events", evil + ".outbox_dedupe", "pg_temp.outbox_events", "pg_temp.outbox_dedupe",
			} {
				var n int
				if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil || n != 0 {
					t.Errorf("%s: %s has %d rows (%v)", part, table, n, err)
				}
			}
		}
	})
}

// shadowNames puts tables and functions with our names where the caller's path would find them first. The fake
// log of actions says that every dead letter is resolved.
func shadowNames(t testing.TB, conn *pgx.Conn, evil string) {
	t.Helper()
	for _, target := range []string{evil, "pg_temp"} {
		for _, statement := range []string{
			`CREATE TABLE %s.outbox_events (lane smallint, id uuid, namespace text, event_type text, ` +
				`aggregate_type text, aggregate_id text, ` +
				`tenant_id text, dedupe_key text, payload_json json, headers json)`,
			`CREATE TABLE %s.outbox_dedupe (namespace text, event_type text, tenant_id text, dedupe_key text, event_id uuid, ` +
				`content_hash bytea, repeated boolean)`,
			`CREATE TABLE %s.outbox_actions (dlq_id bigint, verb text)`,
			`INSERT INTO %s.outbox_actions SELECT i, 'discard' FROM generate_series(1, 9) i`,
			`CREATE TABLE %s.outbox_dlq (id bigint)`,
			`CREATE FUNCTION %s.outbox_check_data(json) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE ''evil''; END'`,
			`CREATE FUNCTION %s.outbox_check_event(uuid, text, text, text, text, text, text, json, json) RETURNS void ` +
				`LANGUAGE plpgsql AS 'BEGIN RAISE ''evil''; END'`,
			`CREATE FUNCTION %s.outbox_lane(text, text, text) RETURNS smallint LANGUAGE plpgsql AS 'BEGIN RAISE ''evil''; END'`,
			`CREATE FUNCTION %s.outbox_uuid7() RETURNS uuid LANGUAGE plpgsql AS 'BEGIN RAISE ''evil''; END'`,
			`CREATE FUNCTION %s.cardinality(uuid[]) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE ''evil''; END'`,
			`CREATE FUNCTION %s.octet_length(text) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE ''evil''; END'`,
		} {
			if _, err := conn.Exec(t.Context(), fmt.Sprintf(statement, target)); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
}

// callAll runs what the role may do, and what only the fake tables would allow.
func callAll(t testing.TB, m *matrix, conn *pgx.Conn, part, path string) {
	t.Helper()
	run := func(statement string) string {
		_, err := conn.Exec(t.Context(), m.ids.Replace(m.db.SQL(statement)))
		return pgtest.SQLState(err)
	}
	count := func() int { return m.db.Count(t, "SELECT count(*) FROM {schema}.outbox_events") }
	before := count()
	switch part {
	case "producer":
		plain := run("SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')")
		keyed := run("SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => '" + path + "')")
		hand := run(insertColumns + ") " + insertValues + ")")
		if plain != "" || keyed != "" || hand != "" || count() != before+3 {
			t.Errorf("producer, path %s: %q, %q, %q, %d events more", path, plain, keyed, hand, count()-before)
		}
	case "janitor":
		if got := run("DELETE FROM {schema}.outbox_dlq WHERE id = {unresolved}"); got != "23001" {
			t.Errorf("janitor, path %s: a fake log resolved a dead letter: %q", path, got)
		}
		if got := run("DELETE FROM {schema}.outbox_actions WHERE dlq_id = {resolved}"); got != "23001" {
			t.Errorf("janitor, path %s: a fake table hid a dead letter: %q", path, got)
		}
	default:
		if got := run("SELECT status FROM {schema}.outbox_status"); got != "" {
			t.Errorf("operator, path %s: %q", path, got)
		}
		logged := func() int { return m.db.Count(t, "SELECT count(*) FROM {schema}.outbox_actions") }
		before := logged()
		m.db.Exec(t, states.Move, m.ids.Replace("{passed}"), 5)
		if got := run("SELECT {schema}.outbox_act('me', 'why', 'redrive', '{{passed}}')"); got != "" || logged() != before+1 {
			t.Errorf("operator, path %s: %q, %d actions more", path, got, logged()-before)
		}
	}
}

// TestFunctionsArePinned: every plpgsql function of ours has its search_path, temporary tables last, and
// nobody may call one who was not granted it.
func TestFunctionsArePinned(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		loose := column(t, db.Pool, `SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
			WHERE p.pronamespace = $1::regnamespace AND l.lanname = 'plpgsql'
			  AND NOT coalesce('search_path=pg_catalog, ' || $1 || ', pg_temp' = ANY (p.proconfig), false)`, db.Schema)
		open := column(t, db.Pool, `SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = $1::regnamespace
			AND has_function_privilege('public', p.oid, 'EXECUTE') AND p.proname <> 'outbox_lane'`, db.Schema)
		// A SQL body is bound when it is made only if it is not a string.
		late := column(t, db.Pool, `SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
			WHERE p.pronamespace = $1::regnamespace AND l.lanname = 'sql' AND p.prosqlbody IS NULL`, db.Schema)
		if len(loose)+len(open)+len(late) > 0 {
			t.Errorf("not pinned %v, open to everyone %v, bound late %v", loose, open, late)
		}
		// Only what checks everything that it is given, and logs it.
		definers := column(t, db.Pool, `SELECT p.proname::text FROM pg_proc p
			WHERE p.pronamespace = $1::regnamespace AND p.prosecdef ORDER BY 1`, db.Schema)
		want := []string{
			"outbox_act", "outbox_cancel", "outbox_change_job", "outbox_erase", "outbox_fail_job", "outbox_limit",
			"outbox_look", "outbox_pause", "outbox_redeliver", "outbox_reissue", "outbox_resume", "outbox_start_job",
			"outbox_take_job", "outbox_work_job",
		}
		if !slices.Equal(definers, want) {
			t.Errorf("%v run as the owner, want %v", definers, want)
		}
	})
}
