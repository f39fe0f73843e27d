package inbox_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestSQLFunctions: what they answer, what they refuse, and that no caller can put other tables in their place.
func TestSQLFunctions(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		tx := db.Begin(t)
		for _, statement := range []string{ // what a caller may do with a path and tables of its own
			"CREATE TEMP TABLE inbox_handled (consumer text, event_id uuid)",
			"CREATE TEMP TABLE inbox_newest (consumer text, namespace text, aggregate_type text, aggregate_id text, seq bigint)",
			"SET LOCAL search_path = pg_temp",
		} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		event := outbox.NewID().String()
		for _, test := range []struct {
			call string
			want bool
		}{
			{"inbox_first('mailer', '" + event + "')", true},
			{"inbox_first('mailer', '" + event + "')", false},
			{"inbox_first('a.b_c-9', '" + event + "')", true},
			{"inbox_newer('mailer', 'default', 'order', '1', 5)", true},
			{"inbox_newer('mailer', 'default', 'order', '1', 5)", false},
			{"inbox_newer('mailer', 'default', 'order', '1', 4)", false},
			{"inbox_newer('mailer', 'default', 'order', '1', 6)", true},
			{"inbox_newer('mailer', 'default', 'orders', '1', 1)", true},
			{"inbox_newer('other', 'default', 'order', '1', 1)", true},
			{"inbox_newer('mailer', 'billing', 'order', '1', 1)", true},
			{"inbox_newer('mailer', NULL, 'order', '1', 6)", false},
		} {
			var got bool
			if err := tx.QueryRow(t.Context(), db.SQL("SELECT {schema}."+test.call)).Scan(&got); err != nil || got != test.want {
				t.Errorf("%s: got %t, %v", test.call, got, err)
			}
		}
		commit(t, tx)
		if n := db.Count(t, "SELECT count(*) FROM {schema}.inbox_handled") + db.Count(t,
			"SELECT count(*) FROM {schema}.inbox_newest"); n != 6 {
			t.Errorf("%d rows, want 6", n)
		}
		for call, want := range map[string]string{
			"inbox_first('Mailer', '" + event + "')":                                                "23514",
			"inbox_first('', '" + event + "')":                                                      "23514",
			"inbox_first(E'mailer\\n', '" + event + "')":                                            "23514",
			"inbox_first(repeat('x', 65), '" + event + "')":                                         "23514",
			"inbox_first(NULL, '" + event + "')":                                                    "23502",
			"inbox_first('mailer', NULL)":                                                           "23502",
			"inbox_newer('mailer', 'default', 'order', '1', 0)":                                     "23514",
			"inbox_newer('mailer', '', 'order', '1', 1)":                                            "23514",
			"inbox_newer('mailer', repeat('x', 129), 'order', '1', 1)":                              "23514",
			"inbox_newer('mailer', 'default', '', '1', 1)":                                          "23514",
			"inbox_newer('mailer', 'default', 'order', '', 1)":                                      "23514",
			"inbox_newer('mailer', 'default', 'order', repeat('x', 513), 1)":                        "23514",
			"inbox_newer('mailer', 'default', repeat('\u00fc', 65), '1', 1)":                        "23514",
			"inbox_newer('mailer', 'default', 'order', NULL, 1)":                                    "23502",
			"inbox_newer('mailer', 'default', 'order', '1', NULL)":                                  "23502",
			"inbox_newer(repeat('x', 64), repeat('n', 128), repeat('y', 128), repeat('z', 512), 1)": "",
			"inbox_first(repeat('x', 64), '00000000-0000-0000-0000-000000000001')":                  "",
		} {
			if _, err := db.Pool.Exec(t.Context(), db.SQL("SELECT {schema}."+call)); pgtest.SQLState(err) != want {
				t.Errorf("%s: got %v, want %s", call, err, want)
			}
		}
	})
}

// TestTheMarksCanBePartitioned by ranges of ids, which begin with their time: docs/guide/inbox.md says how.
func TestTheMarksCanBePartitioned(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		before, event := outbox.NewID(), outbox.NewID()
		tx := db.Begin(t)
		first(t, db, tx, before, true)
		commit(t, tx)
		text, err := os.ReadFile("../../../docs/guide/inbox.md")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), "<!-- partitions -->\n```sql\n")
		script, _, closed := strings.Cut(rest, "```")
		if !found || !closed {
			t.Fatal("docs/guide/inbox.md does not say how")
		}
		tx = db.Begin(t)
		for _, statement := range []string{
			"SET LOCAL search_path = " + quote(db.Schema), script, "SET LOCAL search_path = ''",
		} {
			if _, err := tx.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
		}
		commit(t, tx)
		// Rows of two partitions can have one place: retention must not take the younger for this one.
		db.Exec(t, "INSERT INTO {schema}.inbox_handled (handled_at, event_id, consumer) VALUES (now() - interval '800 "+
			"hours', '01a22ee6-b000-7000-8000-0000000000ff', 'mailer')")
		for range 2 {
			tx = db.Begin(t)
			first(t, db, tx, before, false)
			first(t, db, tx, event, db.Count(t, "SELECT count(*) FROM {schema}.inbox_handled WHERE event_id = $1::text::uuid",
				event.String()) == 0)
			commit(t, tx)
		}
		for id, want := range map[string]string{
			"01a19467-e800-7000-8000-000000000000": "inbox_handled_2026_11", // 2026-11-01
			"01a22ee6-afff-7000-8000-000000000000": "inbox_handled_2026_11", // a millisecond before 2026-12-01
			"01a22ee6-b000-7000-8000-000000000000": "inbox_handled_2026_12",
			"01a2ce8b-d400-7000-8000-000000000000": "inbox_handled_other", // 2027-01-01
		} {
			db.Exec(t, "SELECT {schema}.inbox_first('mailer', $1::text::uuid)", id)
			if n := db.Count(t, "SELECT count(*) FROM {schema}."+want+" WHERE event_id = $1::text::uuid", id); n != 1 {
				t.Errorf("%s is not in %s", id, want)
			}
		}
		role := newRole(t, db, "consumer")
		pool := db.Open(t, pgtest.As(t, db.URL, role), "search_path", "")
		if _, err := pool.Exec(t.Context(), db.SQL("SELECT {schema}.inbox_first('mailer', gen_random_uuid())")); err != nil {
			t.Errorf("a consumer, and an id that is no UUIDv7: %v", err)
		}
		rows := db.Count(t, "SELECT count(*) FROM {schema}.inbox_handled")
		db.Exec(t, "SELECT {schema}.inbox_clean()")
		if left := db.Count(t, "SELECT count(*) FROM {schema}.inbox_handled"); left != rows-1 {
			t.Errorf("%d of %d rows are left, want one less", left, rows)
		}
	})
}

// TestTheDocumentNamesEverything: docs/guide/inbox.md has every table, column, index and function.
func TestTheDocumentNamesEverything(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		text, err := os.ReadFile("../../../docs/guide/inbox.md")
		if err != nil {
			t.Fatal(err)
		}
		rows, err := db.Pool.Query(t.Context(), `
			SELECT relname::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'i') 
			AND relname ~ '^inbox_' AND relname !~ '^inbox_schema_version_'
			UNION SELECT attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
			   WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relname ~ '^inbox_' 
			   AND relname <> 'inbox_schema_version' AND attnum > 0
			UNION SELECT proname::text FROM pg_proc WHERE pronamespace = $1::regnamespace`, db.Schema)
		if err != nil {
			t.Fatal(err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(names) < 28 {
			t.Fatalf("only %d names, %v", len(names), err)
		}
		for _, name := range names {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/guide/inbox.md does not name `%s`", name)
			}
		}
	})
}
