package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// layoutSQL lists what would cost every emit, every settle, or the way to partitions by seq: one line for each such
// thing on the table. $1 is the table, $2 the columns that a settle changes.
const layoutSQL = `
	SELECT format('index %s names %s', i.indexrelid::regclass, a.attname)
	  FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) k(number)
	  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
	 WHERE i.indrelid = $1::regclass AND a.attname = ANY ($2)
	UNION ALL SELECT format('index %s has a predicate or an expression', indexrelid::regclass) FROM pg_index
	 WHERE indrelid = $1::regclass AND (indpred IS NOT NULL OR indexprs IS NOT NULL)
	UNION ALL SELECT format('index %s is unique', indexrelid::regclass) FROM pg_index
	 WHERE indrelid = $1::regclass AND indisunique AND indexrelid::regclass::text NOT LIKE '%outbox_events_pkey'
	UNION ALL SELECT format('constraint %s is no primary key', conname) FROM pg_constraint
	 WHERE conrelid = $1::regclass AND contype NOT IN ('p', 'n')
	UNION ALL SELECT format('trigger %s fires for each row of an insert or update', tgname) FROM pg_trigger
	 WHERE tgrelid = $1::regclass AND NOT tgisinternal AND tgtype & 1 = 1 AND tgtype & (4 | 16) > 0
	   AND (tgqual IS NULL OR tgtype & 16 = 16)
	UNION ALL SELECT 'the fillfactor is ' || coalesce(o.value, 'not set')
	  FROM pg_class c LEFT JOIN LATERAL pg_options_to_table(c.reloptions) o(name, value) ON o.name = 'fillfactor'
	 WHERE c.oid = $1::regclass AND o.value IS DISTINCT FROM '49'`

// TestWhatTheLayoutForbids: nothing that a publish changes is in an index, nothing is planned again by every statement
// that inserts, and nothing but (lane, seq) is unique. Each of these is a mutant as well, which must be named.
func TestWhatTheLayoutForbids(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		forbidden := func() []string {
			t.Helper()
			return column(t, db.Pool, layoutSQL, quote(db.Schema)+".outbox_events", mutable)
		}
		if found := forbidden(); len(found) > 0 {
			t.Fatalf("%q", found)
		}
		if key := column(t, db.Pool, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::regclass "+
			"AND contype = 'p'", quote(db.Schema)+".outbox_events"); !slices.Equal(key, []string{"PRIMARY KEY (lane, seq)"}) {
			t.Errorf("the primary key is %q", key)
		}
		mutants := 0
		for _, mutant := range []struct{ change, back, found string }{
			{"CREATE INDEX m ON {schema}.outbox_events (published_at)", "DROP INDEX {schema}.m", "m names published_at"},
			{"CREATE INDEX m ON {schema}.outbox_events (lane, state)", "DROP INDEX {schema}.m", "m names state"},
			{
				"CREATE INDEX m ON {schema}.outbox_events (seq) INCLUDE (attempt_count)", "DROP INDEX {schema}.m",
				"names attempt_c",
			},
			{"CREATE INDEX m ON {schema}.outbox_events (seq) WHERE state = 0", "DROP INDEX {schema}.m", "has a predicate"},
			{"CREATE INDEX m ON {schema}.outbox_events ((id::text))", "DROP INDEX {schema}.m", "or an expression"},
			{"CREATE UNIQUE INDEX m ON {schema}.outbox_events (id)", "DROP INDEX {schema}.m", "m is unique"},
			{
				"ALTER TABLE {schema}.outbox_events ADD CONSTRAINT m CHECK (state < 8)",
				"ALTER TABLE {schema}.outbox_events DROP CONSTRAINT m", "constraint m is no",
			},
			{
				"CREATE TRIGGER m BEFORE INSERT ON {schema}.outbox_events FOR EACH ROW EXECUTE FUNCTION " +
					"{schema}.outbox_fill_lane()", "DROP TRIGGER m ON {schema}.outbox_events", "trigger m fires for each row",
			},
			{
				"ALTER TABLE {schema}.outbox_events SET (fillfactor = 50)",
				"ALTER TABLE {schema}.outbox_events SET (fillfactor = 49)", "the fillfactor is 50",
			},
		} {
			db.Exec(t, mutant.change)
			if found := strings.Join(forbidden(), "\n"); !strings.Contains(found, mutant.found) {
				t.Errorf("%s: found %q", mutant.change, found)
			}
			db.Exec(t, mutant.back)
			mutants++
		}
		if found := forbidden(); len(found) > 0 {
			t.Errorf("taken back: %q", found)
		}
		figure(t, "mutant_layouts_"+db.Name, mutants)
	})
}

// byHand is an event that somebody writes without our statements, and the ways to say nothing about its lane.
const byHand = "INSERT INTO {schema}.outbox_events (id, namespace, event_type, aggregate_type, aggregate_id, " +
	"tenant_id, " +
	"dedupe_key, headers, payload_json, lane) VALUES ("

// TestWhoBringsNoLaneIsChecked: the lane is filled in, and the event is held to every rule, whichever way the lane is
// not given. One that is given is believed: who brings it has checked the event, and the relay looks at both again. But
// it must be one that there is, and a payload one that a relay can hold.
func TestWhoBringsNoLaneIsChecked(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		newID := func() string { return column(t, db.Pool, db.SQL("SELECT {schema}.outbox_uuid7()::text"))[0] }
		lane := func(id string) int {
			return db.Count(t, "SELECT lane FROM {schema}.outbox_events WHERE id = $1", id)
		}
		for _, given := range []string{"DEFAULT", "NULL"} {
			id := newID()
			db.Exec(t, byHand+"$1, 'billing', 'paid', 'invoice', '1', NULL, NULL, NULL, $2, "+given+")", id, envelope(id, 0))
			if got := lane(id); got != 12 {
				t.Errorf("lane %s became %d, want 12", given, got)
			}
			checkRules(t, db, given, newID)
			// What is missing is told by its own name, not by the lane's.
			_, err := db.Pool.Exec(t.Context(), db.SQL(byHand+"$1, 'billing', 'paid', 'invoice', NULL, NULL, NULL, NULL, $2, "+
				given+")"), id, envelope(id, 0))
			if violation := (*pgconn.PgError)(nil); !errors.As(err, &violation) || violation.Code != "23502" ||
				violation.ColumnName != "aggregate_id" {
				t.Errorf("lane %s, no aggregate_id: got %v", given, err)
			}
		}
		if id := insertEvent(t, db, "1", 0); lane(id) != 49 {
			t.Errorf("without a lane it became %d, want 49", lane(id))
		}
		// Not looked at: the wrong lane, an id that is no UUIDv7, a payload that is no envelope, names that are none.
		const id = "00000000-0000-4000-8000-0000000000ff"
		db.Exec(t, byHand+"$1, ' ', ' ', ' ', '', '', '', '[]', '[]', 33)", id)
		if got := lane(id); got != 33 {
			t.Errorf("a given lane became %d, want 33", got)
		}
		rejected := func(lane, payload, constraint string) {
			t.Helper()
			_, err := db.Pool.Exec(t.Context(), db.SQL(byHand+"$1, 'billing', 'paid', 'invoice', '1', NULL, NULL, NULL, $2, "+
				lane+")"), newID(), payload)
			if violation := (*pgconn.PgError)(nil); !errors.As(err, &violation) || violation.Code != "23514" ||
				violation.ConstraintName != constraint {
				t.Errorf("lane %s, %d bytes: got %v, want %s", lane, len(payload), err, constraint)
			}
		}
		for _, none := range []string{"0", "-1", "65"} {
			rejected(none, "{}", "outbox_lane_is_left_out_or_1_to_64")
		}
		const most = 9 << 20
		largest := `"` + strings.Repeat("a", most-2) + `"`
		db.Exec(t, byHand+"$1, 'billing', 'paid', 'invoice', '1', NULL, NULL, NULL, $2, 12)", newID(), largest)
		rejected("12", largest+" ", "outbox_events_payload_size")
		// Out of another table it comes compressed.
		for column, most := range map[string]int{"payload_json": most, "headers": 512 << 10} {
			for size, want := range map[int]string{most: "", most + 1: "23514"} {
				tx := db.Begin(t)
				if _, err := tx.Exec(t.Context(), "CREATE TEMP TABLE big ON COMMIT DROP AS SELECT "+
					"to_json(repeat('a', $1::integer - 2)) AS text", size); err != nil {
					t.Fatal(err)
				}
				_, err := tx.Exec(t.Context(), db.SQL(`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type,
					aggregate_id, payload_json, headers) SELECT 12, gen_random_uuid(), 'a', 'b', 'c',
					CASE $1::text WHEN 'payload_json' THEN text ELSE '{}' END, CASE $1::text WHEN 'headers' THEN text END
					FROM big`), column)
				if got := pgtest.SQLState(err); got != want {
					t.Errorf("%s of %d bytes out of another table: %v", column, size, err)
				}
				_ = tx.Rollback(t.Context())
			}
		}
	})
}

// checkRules breaks each rule once.
func checkRules(t testing.TB, db *pgtest.DB, given string, newID func() string) {
	t.Helper()
	long := "repeat('x', 600)"
	rules := map[string]string{
		"id_is_uuid_v7":  "'00000000-0000-4000-8000-000000000001', 'n', 't', 'a', '1', NULL, NULL, NULL, '{}'",
		"namespace":      "{new}, '', 't', 'a', '1', NULL, NULL, NULL, {envelope}",
		"event_type":     "{new}, 'n', 'a b', 'a', '1', NULL, NULL, NULL, {envelope}",
		"aggregate_type": "{new}, 'n', 't', " + long + ", '1', NULL, NULL, NULL, {envelope}",
		"aggregate_id":   "{new}, 'n', 't', 'a', E'1\\x01', NULL, NULL, NULL, {envelope}",
		"payload_size": "{new}, 'n', 't', 'a', '1', NULL, NULL, NULL, ('{\"eventId\":\"' || {new} || '\",\"x\":\"' || " +
			"repeat('x', 9437184) || '\"}')::json",
		"payload_is_envelope": "{new}, 'n', 't', 'a', '1', NULL, NULL, NULL, '{\"eventId\":\"another\"}'",
		"tenant_id":           "{new}, 'n', 't', 'a', '1', '', NULL, NULL, {envelope}",
		"dedupe_key":          "{new}, 'n', 't', 'a', '1', NULL, " + long + ", NULL, {envelope}",
		"tenant_owns_key":     "{new}, 'n', 't', 'a', '1', 'acme', 'other/k', NULL, {envelope}",
		"headers":             "{new}, 'n', 't', 'a', '1', NULL, NULL, '{\"event_id\":\"x\"}', {envelope}",
	}
	for rule, values := range rules {
		id := newID()
		values = strings.NewReplacer("{new}", "'"+id+"'", "{envelope}", "'"+envelope(id, 0)+"'").Replace(values)
		_, err := db.Pool.Exec(t.Context(), db.SQL(byHand+values+", "+given+")"))
		violation := (*pgconn.PgError)(nil)
		if !errors.As(err, &violation) || violation.Code != "23514" || violation.ConstraintName != "outbox_events_"+rule {
			t.Errorf("lane %s: %s: got %v", given, rule, err)
		}
	}
}
