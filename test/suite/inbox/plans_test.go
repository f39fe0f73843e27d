package inbox_test

import (
	"math"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// buffers is how many pages a statement touches, each time it does, with the functions that it calls. It is taken
// back. The first time also reads the catalog, and so does any other after somebody else has changed their tables:
// other tests do that all the time, so the least of some times counts.
func buffers(t testing.TB, db *pgtest.DB, mode, statement string) int {
	t.Helper()
	tx := db.Begin(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "SET LOCAL plan_cache_mode = "+mode); err != nil {
		t.Fatal(err)
	}
	least := math.MaxInt
	for range 5 {
		var plan []byte
		if err := tx.QueryRow(t.Context(), db.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+statement),
			pgx.QueryExecModeSimpleProtocol).Scan(&plan); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		least = min(least, pgtest.Pages(t, plan))
	}
	return least
}

// TestFaultI15TheCostStaysFlat: with 200,000 marks and as many aggregates, a delivery touches as many pages as with a
// thousand, but for the height of the indexes; and a batch of retention what it deletes. With generic plans, and
// without statistics as well.
func TestFaultI15TheCostStaysFlat(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "ALTER TABLE {schema}.inbox_handled SET (autovacuum_enabled = false)") // no ANALYZE before its time
		db.Exec(t, "ALTER TABLE {schema}.inbox_newest SET (autovacuum_enabled = false)")
		known := outbox.NewID().String()
		db.Exec(t, "SELECT {schema}.inbox_first('mailer', $1::text::uuid), {schema}.inbox_newer('mailer', 'default', "+
			"'order', 'known', 5)", known)
		grow := func(from, to int) {
			t.Helper()
			// Ids and times in order, as deliveries bring them; a fifth is due.
			db.Exec(t, `INSERT INTO {schema}.inbox_handled (handled_at, event_id, consumer)
				SELECT now() - interval '900 hours' + i * interval '16 seconds', 
				(lpad(to_hex(1700000000000 + i), 12, '0') || '70008' || lpad(to_hex(i), 15, '0'))::uuid, 'mailer' 
				FROM generate_series($1::int, $2) i`, from, to)
			db.Exec(t, `INSERT INTO {schema}.inbox_newest (seq, consumer, namespace, aggregate_type, aggregate_id) SELECT i, `+
				`'mailer', 'default', 'order', 'order-' || i FROM generate_series($1::int, $2) i`, from, to)
			// From now on no step is long, so that retention does not count.
			db.Exec(t, "UPDATE {schema}.inbox_retention SET cut_off = now() - interval '720 hours', ran_at = now()")
		}
		statements := map[string]struct {
			sql  string
			most int // pages with many rows
		}{
			"first": {
				"WITH m AS (INSERT INTO {schema}.inbox_handled (consumer, event_id) VALUES ('mailer', gen_random_uuid()) ON " +
					"CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM m", 16,
			},
			"a copy": {
				"WITH m AS (INSERT INTO {schema}.inbox_handled (consumer, event_id) VALUES ('mailer', '" + known +
					"') ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM m", 12,
			},
			"inbox_first":     {"SELECT {schema}.inbox_first('mailer', gen_random_uuid())", 16},
			"newer":           {"SELECT {schema}.inbox_newer('mailer', 'default', 'order', 'known', 7)", 12},
			"older":           {"SELECT {schema}.inbox_newer('mailer', 'default', 'order', 'known', 4)", 12},
			"a new aggregate": {"SELECT {schema}.inbox_newer('mailer', 'default', 'order', gen_random_uuid()::text, 4)", 16},
			"retention":       {"SELECT * FROM {schema}.inbox_clean(batch => 100)", 600},
		}
		grow(1, 1000)
		few := map[string]int{}
		for name, s := range statements {
			few[name] = buffers(t, db, "auto", s.sql)
		}
		grow(1001, 200_000)
		for _, statistics := range []string{"stale", "fresh"} {
			if statistics == "fresh" {
				db.Exec(t, "ANALYZE {schema}.inbox_handled, {schema}.inbox_newest")
			}
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				for name, s := range statements {
					pages := buffers(t, db, mode, s.sql)
					t.Logf("%s, %s, statistics %s: %d pages, %d with few rows", name, mode, statistics, pages, few[name])
					if pages > s.most {
						t.Errorf("%s, %s, statistics %s: %d pages, want at most %d", name, mode, statistics, pages, s.most)
					}
					if name != "retention" && pages > few[name]+5 {
						t.Errorf("%s, %s, statistics %s: %d pages, and %d with few rows", name, mode, statistics, pages, few[name])
					}
				}
			}
		}
		t.Logf("%d bytes a mark, indexes included",
			db.Count(t, "SELECT pg_total_relation_size('{schema}.inbox_handled') / count(*) FROM {schema}.inbox_handled"))
		// The measure itself must see what has no index.
		if scan := buffers(t, db, "auto", "SELECT count(*) FROM {schema}.inbox_handled WHERE consumer = 'nobody'"); scan <
			1000 {
			t.Errorf("a scan of the table touches %d pages: this test would see nothing", scan)
		}
	})
}
