package schema

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

//go:embed testdata/partition.sql
var partitionSQL string

// partitioned writes events, makes the table a partitioned one, and writes more: 10 are in the old table, 1,000 in the
// first new partition, the rest in the second.
func partitioned(t testing.TB, db *pgtest.DB) {
	t.Helper()
	fill(t, db, 10, 100)
	db.Exec(t, "SELECT nextval('{schema}.outbox_events_seq_seq')") // of a transaction that was rolled back
	tx := db.Begin(t)
	for _, statement := range []string{
		"SET LOCAL search_path = " + quote(db.Schema), partitionSQL, "SET LOCAL search_path = ''",
	} {
		if _, err := tx.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// Producers notice nothing, whichever way they write.
	contract := outbox.Define[struct{}](outbox.Contract{Type: "order_created", Aggregate: "order", Topic: "orders"})
	if _, err := outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), contract.New("1", struct{}{})); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '2', '{}', dedupe_key => 'k')")
	insertEvent(t, db, "3", 0)
	// As fill does, without its change of settings: a partitioned table has none.
	db.Exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json)
		SELECT {schema}.outbox_lane('default', 'order', (i % 100)::text), id, 'order_created', 'order', (i % 100)::text,
		       ('{"eventId":"' || id || '"}')::json
		  FROM (SELECT {schema}.outbox_uuid7() AS id, i FROM generate_series(1, 1200) i OFFSET 0) g`)
	db.Exec(t, "ANALYZE {schema}.outbox_events")
}

// TestEventsCanBecomePartitioned: partitions by number can come later without a change for producers. The numbers go
// on, the guards hold, also for who names a partition, and every settle is HOT.
func TestEventsCanBecomePartitioned(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		partitioned(t, db)
		got := column(t, db.Pool, db.SQL(`SELECT format('%s %s %s-%s', c.relname, count(*), min(e.seq), max(e.seq))
			FROM {schema}.outbox_events e JOIN pg_class c ON c.oid = e.tableoid GROUP BY c.relname ORDER BY c.relname`))
		if want := []string{
			"outbox_events_1 1000 12-1011", "outbox_events_2 203 1012-1214", "outbox_events_old 10 1-10",
		}; !slices.Equal(got, want) {
			t.Fatalf("the partitions have %q, want %q", got, want)
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE lane <> "+
			"{schema}.outbox_lane(namespace, aggregate_type, aggregate_id)"); n != 0 {
			t.Errorf("%d events are in a wrong lane", n)
		}
		for _, table := range []string{"outbox_events", "outbox_events_1", "outbox_events_2", "outbox_events_old"} {
			wantRejected(t, db, "UPDATE {schema}."+table+" SET payload_json = '{}'")
			wantRejected(t, db, "UPDATE {schema}."+table+" SET lane = lane")
			wantRejected(t, db, "DELETE FROM {schema}."+table)
			wantRejected(t, db, "TRUNCATE {schema}."+table)
		}
		err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), db.SQL("UPDATE {schema}.outbox_events SET state = 6, "+
				"published_at = clock_timestamp() WHERE state = 0")); err != nil {
				return err
			}
			var updates, hot int
			if err := tx.QueryRow(t.Context(), `SELECT sum(n_tup_upd), sum(n_tup_hot_upd) FROM pg_stat_xact_user_tables
				WHERE schemaname = $1 AND relname LIKE 'outbox\_events%'`, db.Schema).Scan(&updates, &hot); err != nil {
				return err
			}
			if updates != 1213 || hot != updates {
				t.Errorf("%d of %d settles were HOT", hot, updates)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_status WHERE status = 'published'"); n != 1213 {
			t.Errorf("the view has %d published events", n)
		}
		db.Exec(t, "DELETE FROM {schema}.outbox_events WHERE lane BETWEEN 1 AND 64 AND seq <= 1011")
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 203 {
			t.Errorf("%d events are left", n)
		}
	})
}

// scanned are the partitions that a statement reads, by EXPLAIN ANALYZE of its prepared form. It is taken back.
func scanned(t testing.TB, db *pgtest.DB, mode, types, statement, args string) []string {
	t.Helper()
	conn := connect(t, db.URL)
	for _, setup := range []string{
		"SET plan_cache_mode = " + mode, "PREPARE p (" + types + ") AS " + db.SQL(statement), "BEGIN",
	} {
		if _, err := conn.Exec(t.Context(), setup, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", setup, err)
		}
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE p ("+args+")",
		pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	scan := regexp.MustCompile(` Scan (?:using \S+ )?on (outbox_events_\w+)`)
	for _, line := range lines {
		if part := scan.FindStringSubmatch(line); part != nil && !strings.Contains(line, "Bitmap Index Scan") &&
			!strings.Contains(line, "never executed") {
			found[part[1]] = true
		}
	}
	if len(found) == 0 {
		t.Fatalf("no partition is read:\n%s", strings.Join(lines, "\n"))
	}
	return slices.Sorted(maps.Keys(found))
}

// TestBoundsPrune: what the relay and retention do by lane and number reads one partition, with any plan. By id it
// would read all of them: that is why nothing goes by id.
func TestBoundsPrune(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		partitioned(t, db)
		db.Exec(t, `INSERT INTO {schema}.outbox_relays (id, token, name, lanes)
			SELECT $1, $2, 'one', array_agg(lane) FROM {schema}.outbox_lanes`, relayOne, tokenOne)
		// list is an array of one expression over the events with numbers from 500 to 800, as a literal.
		list := func(of string) string {
			return "'" + column(t, db.Pool, db.SQL("SELECT array_agg("+of+" ORDER BY lane, seq)::text "+
				"FROM {schema}.outbox_events WHERE seq BETWEEN 500 AND 800"))[0] + "'"
		}
		const own, ownTypes = "'" + relayOne + "', '" + tokenOne + "', '{}'", "uuid, uuid, smallint[]"
		const publish = ownTypes + ", smallint[], bigint[], bigint, bigint"
		zeros, empty := list("0"), list("''::text")
		for name, c := range map[string]struct{ types, statement, args string }{
			"settle of what was published": {
				publish, relaySQL(t, "settle_published"), own + ", " + list("lane") + ", " + list("seq") + ", 500, 800",
			},
			"settle": {
				ownTypes + ", smallint[], bigint[], bigint[], smallint[], integer[], bigint[], text[], text[], text[], bigint, " +
					"bigint, smallint[], text[], text[]", relaySQL(t, "settle"),
				strings.Join([]string{
					own, list("lane"), list("seq"), zeros, list("6"), zeros, zeros, empty, empty, empty, "500, 800", "'{}'",
					empty, empty,
				}, ", "),
			},
			"read": {
				"smallint[], bigint[], bigint[], integer[], bigint[], bigint[], uuid, uuid, text[], bigint[]", relaySQL(t, "read"),
				"'{7, 49}', '{300, 300}', '{300, 300}', '{100, 100}', '{}', '{}', NULL, NULL, '{}', '{500, 500}'",
			},
			"retention": {
				"bigint, bigint, timestamptz, integer", janitorSQL(t, "events"), "100, 900, now() + interval '1 hour', 500",
			},
		} {
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				if got := scanned(t, db, mode, c.types, c.statement, c.args); !slices.Equal(got, []string{"outbox_events_1"}) {
					t.Errorf("%s, %s: reads %v", name, mode, got)
				}
			}
		}
		byID := "UPDATE {schema}.outbox_events SET state = 6 WHERE id = ANY ($1) AND state = 0"
		if got := scanned(t, db, "force_generic_plan", "uuid[]", byID, list("id")); len(got) != 3 {
			t.Errorf("by id it reads %v: this test would not see a statement that reads too much", got)
		}
		// Of a batch on both sides of a border, both.
		border := own + ", '{7, 7}', '{1000, 1020}', 1000, 1020"
		if got := scanned(t, db, "force_generic_plan", publish, relaySQL(t, "settle_published"), border); !slices.Equal(got,
			[]string{"outbox_events_1", "outbox_events_2"}) {
			t.Errorf("across a border it reads %v", got)
		}
	})
}

// TestTheRelayWorksOnPartitions: its own statements, with its own rights.
func TestTheRelayWorksOnPartitions(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		partitioned(t, db)
		relay, lane := asPart(t, db, "relay"), laneOf(t, db, "1")
		countRows(t, relay, db.SQL(relaySQL(t, "register")), relayOne, tokenOne, "one", "")
		if n := countRows(t, relay, db.SQL(relaySQL(t, "acquire")), []int16{lane}, 1, relayOne, tokenOne,
			tokenOne); n != 1 {
			t.Fatalf("took over %d lanes", n)
		}
		countRows(t, relay, db.SQL(relaySQL(t, "own_lanes")), relayOne, tokenOne)
		var numbers []int64
		query := "SELECT seq::text FROM (" + relaySQL(t, "read") + ") r WHERE id IS NOT NULL"
		for _, number := range column(t, relay, db.SQL(query),
			[]int16{lane}, []int64{0}, []int64{0}, []int32{100}, []int64{}, []int64{}, relayOne, tokenOne, []string{},
			[]int64{1 << 40}) {
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, n)
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE lane = $1", lane); len(numbers) != n ||
			n < 10 || !slices.IsSorted(numbers) {
			t.Fatalf("read %v of %d in the lane", numbers, n)
		}
		n := len(numbers)
		lanes, next := slices.Repeat([]int16{lane}, n), slices.Repeat([]int16{6}, n)
		reasons, nothing, none := make([]string, n), make([]string, n), make([]int64, n)
		next[0], reasons[0] = 4, "rejected"
		for again := range 2 {
			var applied bool
			var held []int16
			var at int64
			var unchanged []int64
			err := relay.QueryRow(t.Context(), db.SQL(relaySQL(t, "settle")), relayOne, tokenOne, []int16{lane}, lanes, numbers,
				none, next, make([]int32, n), none, nothing, reasons, nothing, numbers[0], numbers[n-1],
				[]int16{}, nothing, nothing).Scan(&applied, &held, &at, &unchanged)
			if err != nil || !applied || len(unchanged) != again {
				t.Errorf("time %d: the settle answered %v, %v, and left %v", again, applied, err, unchanged)
			}
		}
		if published, blocks, letters := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE state = 6"),
			db.Count(t, "SELECT count(*) FROM {schema}.outbox_status WHERE state = 4"),
			db.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq"); published != n-1 || blocks != 1 || letters != 1 {
			t.Errorf("%d are published, %d block, %d dead letters", published, blocks, letters)
		}
		// What retention would delete, with the janitor's rights.
		if n := countRows(t, asPart(t, db, "janitor"), db.SQL(janitorSQL(t, "events")), 0, 1<<40, time.Now().Add(time.Hour),
			5000); n != 1 {
			t.Errorf("retention answered %d rows", n)
		}
		if left := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE lane = $1", lane); left != 1 {
			t.Errorf("%d events of the lane are left, want the dead one", left)
		}
	})
}
