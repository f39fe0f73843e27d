package schema

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// history fills the tables as they are in the middle of a working day: much that is published, some that
// is ready, little that is held, and the rest of the tables in proportion.
func history(t testing.TB, db *pgtest.DB) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, state,
		published_at, created_at)
		SELECT {schema}.outbox_lane('default', 'kind_' || i % 10, (i % 5000)::text), id, 'type_' || i % 40,
		       'kind_' || i % 10, (i % 5000)::text, ('{"eventId":"' || id || '"}')::json, state,
		       CASE WHEN state = 6 THEN now() - (60000 - i) * interval '1 minute' END, now()
		  FROM (SELECT {schema}.outbox_uuid7() AS id, i, CASE WHEN i % 300 = 240 THEN 5 WHEN i % 60 = 0 THEN 1
		  WHEN i % 61 = 0 THEN 7 WHEN i > 55000 THEN 0 ELSE 6 END AS state
		          FROM generate_series(1, 60000) i OFFSET 0) g`,
		`INSERT INTO {schema}.outbox_held (lane, seq, kind, due, since, namespace, event_type, aggregate_type, aggregate_id)
		SELECT lane, seq, 1 + seq / 60 % 5,
			CASE WHEN seq / 60 % 5 = 0 THEN now() + (seq % 200 - 100) * interval '1 minute' END,
		       now() - seq * interval '1 second', namespace, event_type, aggregate_type, aggregate_id
		  FROM {schema}.outbox_events WHERE state = 1`,
		`INSERT INTO {schema}.outbox_dedupe (event_id, created_at, namespace, event_type, tenant_id, dedupe_key, content_hash)
		SELECT id, now() - seq * interval '1 minute', namespace, event_type, '', seq::text, '' FROM {schema}.outbox_events 
		WHERE seq % 4 = 0`,
		`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type, 
		aggregate_type, aggregate_id, error_reason, payload_json)
		SELECT seq, id, created_at, 10, state = 1, namespace, event_type, aggregate_type, aggregate_id, 'max_attempts', 
		payload_json
		  FROM {schema}.outbox_events WHERE state = 5 OR seq % 20 = 0`,
		`INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor)
		SELECT gen_random_uuid(), 'discard', event_id, id, 'somebody' FROM {schema}.outbox_dlq WHERE id % 10 < 9`,
		`INSERT INTO {schema}.outbox_requests (action_id, event_id, event_seq, lane, delivered_at)
		SELECT a.action_id, e.id, e.seq, e.lane, CASE WHEN a.id % 50 > 0 THEN now() END
		  FROM {schema}.outbox_actions a JOIN {schema}.outbox_events e ON e.id = a.event_id`,
	} {
		db.Exec(t, statement)
	}
}

// planned is a statement with the index it was made for.
type planned struct {
	name, statement, types string
	args                   string // as EXECUTE takes them
	index                  string
	condition              string // a regular expression that the Index Cond of that index must match
	sorts                  bool   // whether the plan may sort
}

func statements(t testing.TB) []planned {
	t.Helper()
	const batch, old = "bigint, timestamptz, integer", "1, now() - interval '41 days', 500"
	const events, window = "bigint, bigint, timestamptz, integer", "0, 60000, now() - interval '41 days', 500"
	const cutOff = "now() - interval '41 days'"
	const letters = "text[], timestamptz, bigint, timestamptz, text, text, text, text, text, text, text, boolean, " +
		"integer, integer, text"
	const newest = ", now(), 0, 'epoch', '', '', '', '', '', '', '', true, 10000, 100, 'refused'"
	return append([]planned{
		{"open requests", requestsSQL, "smallint", "3", "outbox_requests_open", `lane = `, false},
		{
			"retention", janitorSQL(t, "events"), events, window, "outbox_events_pkey", `lane = .*seq > .*seq <= `, true,
		},
		{
			"retention, by number", janitorSQL(t, "events"), events, window, "outbox_events_pkey",
			`lane = k.lane.*seq = k.seq`, true,
		},
		{"retention of dead letters", janitorSQL(t, "dead"), batch, old, "outbox_dlq_pkey", `id >= `, false},
		{
			"retention of dead letters, whether resolved", janitorSQL(t, "dead"), batch, old, "outbox_actions_dlq_id",
			`dlq_id = `, false,
		},
		{
			"retention of keys", janitorSQL(t, "dedupe"), batch, old, "outbox_dedupe_created_at",
			`created_at >= .*created_at < `, false,
		},
		{
			"sample of events", janitorSQL(t, "due_events"), "timestamptz, integer, bigint", cutOff + ", 20, 100",
			"outbox_events_pkey", `lane = .*seq >= .*seq <= `, true,
		},
		{
			"count of dead letters", janitorSQL(t, "count_dead"), "timestamptz", cutOff, "outbox_actions_dlq_id",
			`dlq_id = `, false,
		},
		{
			"retention of keys, whether the event is there", janitorSQL(t, "dedupe"), batch, old, "outbox_events_id",
			`id = `, false,
		},
		{
			"page of dead letters", operatorSQL(t, "letters"), letters, "NULL" + newest, "outbox_dlq_failed_at",
			`ROW.*failed_at >= `, true,
		},
		{
			"page of dead letters of events", operatorSQL(t, "letters"), letters, "ARRAY['" + relayOne + "']" + newest,
			"outbox_dlq_event_id", `event_id = `, true,
		},
		{
			"dead letters, whether resolved", operatorSQL(t, "letters"), letters, "NULL" + newest, "outbox_actions_dlq_id",
			`dlq_id = `, true,
		},
		{
			"dead letters by number", operatorSQL(t, "letters_read"), "bigint[]", "ARRAY[7, 8]", "outbox_dlq_pkey",
			`id = ANY`, true,
		},
		{
			"look-up by aggregate", "SELECT id FROM {schema}.outbox_events WHERE aggregate_type = $1 AND aggregate_id = $2",
			"text, text", "'kind_7', '77'", "outbox_events_aggregate", `aggregate_type = .*aggregate_id = `, true,
		},
		{
			"newest of an aggregate", "SELECT id FROM {schema}.outbox_events WHERE aggregate_type = $1 AND aggregate_id = $2 " +
				"ORDER BY seq DESC LIMIT 5", "text, text", "'kind_7', '77'", "outbox_events_aggregate",
			`aggregate_type = .*aggregate_id = `, true,
		},
		{
			"look-up by time of creation", "SELECT id FROM {schema}.outbox_events WHERE id >= $1 AND id < $2", "uuid, uuid",
			"'00000000-0000-7000-8000-000000000000', '00000000-0001-7000-8000-000000000000'", "outbox_events_id",
			`id >= .*id < `, true,
		},
		{
			"newest of a lane", "SELECT id FROM {schema}.outbox_events WHERE lane = $1 ORDER BY seq DESC LIMIT 50", "smallint",
			"7", "outbox_events_pkey", `lane = `, false,
		},
	}, lookUps...)
}

// lookUps are what people ask.
var lookUps = []planned{
	{
		"one event's status", "SELECT status FROM {schema}.outbox_status WHERE id = $1", "uuid", "'" + relayOne + "'",
		"outbox_events_id", `id = `, true,
	},
	{
		"one event's status, how it is held", "SELECT status FROM {schema}.outbox_status WHERE id = $1", "uuid",
		"'" + relayOne + "'", "outbox_held_pkey", `lane = .*seq = `, true,
	},
	{
		"an aggregate's status",
		"SELECT status FROM {schema}.outbox_status WHERE aggregate_type = $1 AND aggregate_id = $2", "text, text",
		"'kind_7', '77'", "outbox_events_aggregate", `aggregate_type = .*aggregate_id = `, true,
	},
	{
		"held events of an aggregate",
		"SELECT seq FROM {schema}.outbox_held WHERE lane = $1 AND namespace = 'default' AND " +
			"aggregate_type = $2 AND aggregate_id = $3", "smallint, text, text", "7, 'kind_7', '77'", "outbox_held_line",
		`lane = .*aggregate_id = `, true,
	},
	{
		"parked for longest in a lane", "SELECT seq FROM {schema}.outbox_held WHERE lane = $1 AND kind = 2 ORDER BY since " +
			"LIMIT 5", "smallint", "7", "outbox_held_since", `lane = .*kind = `, true,
	},
	{
		"retries that are due in a lane",
		"SELECT seq FROM {schema}.outbox_held WHERE lane = $1 AND kind = 1 AND due <= $2 " +
			"ORDER BY due, seq LIMIT 5", "smallint, timestamptz", "7, now()", "outbox_held_due",
		`lane = .*kind = .*due <= `, false,
	},
	{
		"dead letters of an event", "SELECT id FROM {schema}.outbox_dlq WHERE event_id = $1", "uuid", "'" + relayOne + "'",
		"outbox_dlq_event_id", `event_id = `, true,
	},
	{
		"newest dead letters", "SELECT id FROM {schema}.outbox_dlq ORDER BY failed_at DESC, id DESC LIMIT 50", "", "",
		"outbox_dlq_failed_at", "", false,
	},
	{
		"actions on a dead letter", "SELECT verb FROM {schema}.outbox_actions WHERE dlq_id = $1", "bigint", "7",
		"outbox_actions_dlq_id", `dlq_id = `, true,
	},
}

// plan explains a prepared statement.
func (p planned) plan(t testing.TB, db *pgtest.DB, conn *pgx.Conn) string {
	t.Helper()
	types, args := "", ""
	if p.types != "" {
		types, args = "("+p.types+")", "("+p.args+")"
	}
	for _, statement := range []string{"DEALLOCATE ALL", "PREPARE p " + types + " AS " + db.SQL(p.statement)} {
		if _, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE p "+args, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	// The type of a lane is a domain of it.
	return regexp.MustCompile(`\(((\w+\.)?lane)\)::smallint`).ReplaceAllString(strings.Join(lines, "\n"), "$1")
}

// wrong says what the plan does not do, or "".
func (p planned) wrong(plan string) string {
	scan := regexp.MustCompile(`(?:Index Scan|Index Only Scan|Index Scan Backward|Index Only Scan Backward|Bitmap Index ` +
		`Scan)(?: using| on) ` + p.index + `\b`)
	at := scan.FindStringIndex(plan)
	switch {
	case at == nil:
		return "does not use " + p.index
	case p.condition != "" && !regexp.MustCompile(`Index Cond: [^\n]*`+p.condition).MatchString(plan[at[0]:]):
		return "has no Index Cond like " + p.condition
	case regexp.MustCompile(`Seq Scan on (outbox_events|outbox_dlq|outbox_dedupe|outbox_requests)\b`).MatchString(plan):
		return "reads a whole table"
	case !p.sorts && strings.Contains(plan, "Sort"):
		return "sorts"
	}
	return ""
}

// TestStatementsUseTheirIndexes: each statement of the janitor and of people that read the tables has an index
// and uses it, with custom and with generic plans, before the first ANALYZE and after. The relay tests its own.
func TestStatementsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		tables := []string{"events", "held", "dedupe", "dlq", "actions", "requests"}
		for _, table := range tables {
			db.Exec(t, "ALTER TABLE {schema}.outbox_"+table+" SET (autovacuum_enabled = false)") // no ANALYZE before its time
		}
		history(t, db)
		conn := connect(t, db.URL)
		plans := 0
		for _, statistics := range []string{"none", "fresh"} {
			if statistics == "fresh" {
				for _, table := range tables {
					db.Exec(t, "ANALYZE {schema}.outbox_"+table)
				}
			}
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				if _, err := conn.Exec(t.Context(), "SET plan_cache_mode = "+mode); err != nil {
					t.Fatal(err)
				}
				for _, p := range statements(t) {
					// An id is not known to be unique. Before the first ANALYZE hundreds of events are expected of one, and then
					// what is held is read whole: it is little.
					if statistics == "none" && p.index == "outbox_held_pkey" {
						continue
					}
					plan := p.plan(t, db, conn)
					if wrong := p.wrong(plan); wrong != "" {
						t.Errorf("%s, %s, statistics %s: %s\n%s", p.name, mode, statistics, wrong, plan)
					}
					plans++
				}
			}
		}
		figure(t, "plans_"+db.Name, plans)
	})
}

// TestAMissingIndexIsSeen: without its index no statement passes for one that uses it.
func TestAMissingIndexIsSeen(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		history(t, db)
		db.Exec(t, "ANALYZE {schema}.outbox_events")
		db.Exec(t, "DROP INDEX {schema}.outbox_events_id, {schema}.outbox_events_aggregate, {schema}.outbox_held_line, "+
			"{schema}.outbox_held_due, {schema}.outbox_held_since, {schema}.outbox_requests_open, "+
			"{schema}.outbox_dlq_failed_at")
		conn := connect(t, db.URL)
		missed := 0
		for _, p := range statements(t) {
			if p.wrong(p.plan(t, db, conn)) != "" {
				missed++
			}
		}
		if missed < 11 {
			t.Errorf("only %d statements miss their index", missed)
		}
	})
}

func connect(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}
