package pgstore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// hiddenLimit is what keeps the planner from conditions that it would make too much of.
const hiddenLimit = " LIMIT (SELECT 9223372036854775807)"

// dearer explains a statement as it is not, and fails unless it costs far more than the other one may, with a custom or
// a generic plan. Otherwise the test of that one would be worth nothing.
func (w *world) dearer(t testing.TB, unsafe planned) {
	t.Helper()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		conn := w.connect(t, "SET plan_cache_mode = "+mode)
		_, buffers := unsafe.plan(t, conn)
		_ = conn.Close(t.Context())
		t.Logf("%s, %s: %d buffers for %d rows", unsafe.name, mode, buffers, unsafe.rows)
		if buffers > 3*(unsafe.least+unsafe.rows*unsafe.perRow) {
			return
		}
	}
	t.Errorf("%s does not touch many buffers: this test does not test", unsafe.name)
}

// readAll is a read of all lanes, so many rows of each.
func readAll(bound int64, limit int, window int64) (read core.Read) {
	for _, lane := range allLanes() {
		read.Lanes = append(read.Lanes, core.LaneRead{Lane: lane, W: bound, C: bound, Limit: limit, Window: window})
	}
	return read
}

// TestAMillionDeadRows: rows that were settled while somebody's snapshot holds them. What begins above them does not
// meet them; what begins below looks at no more than its window. After an ANALYZE that saw nothing else, 200,000 ready
// rows are read in the order of the index, and no more of them than the limit.
func TestAMillionDeadRows(t *testing.T) {
	t.Parallel()
	const settled, window, ready, limit = 1_000_000, 50_000, 200_000, 100
	onEach(t, func(t *testing.T, w *world) {
		w.large(t)
		w.load(t, func() { w.fill(t, 1, settled, "'type_' || i % 40", "'kind'", "(i % 5000)::text", "0") })
		snapshot := must(w.owner.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
		defer func() { _ = snapshot.Rollback(t.Context()) }()
		do(t, snapshot, w.sql("SELECT count(*) FROM {schema}.outbox_lanes"))
		w.exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
		w.fill(t, 1, 20_000, "'type_' || i % 40", "'kind_' || i % 10", "(i % 5000)::text", "(i % 60 = 0)::integer")
		w.holdAll(t, "1::smallint")
		above := claims(t, w, settled)
		read := func(name string, rows int, read core.Read) planned {
			statement, args := w.store.ReadStatement(read)
			return planned{
				name, statement, args, "outbox_events_pkey", `lane = l\.lane\) AND \(seq > .*\) AND \(seq <= `, false, rows, 2,
				64 * 6,
			}
		}
		inWindow := read("read of a window", window, readAll(0, 8, window))
		for _, when := range []string{"without statistics", "fresh statistics"} {
			if when == "fresh statistics" {
				w.exec(t, "UPDATE {schema}.outbox_events SET state = 6 WHERE state = 0")
				w.exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_held")
			} else {
				w.inEachMode(t, when, above[:6]...)
			}
			w.inEachMode(t, when, inWindow)
		}
		all := inWindow // from below it must be seen that the dead rows are there
		all.name, all.args = "read without a window", read("", 0, readAll(0, 8, 0)).args
		w.dearer(t, all)

		last := w.count(t, "SELECT max(seq) FROM {schema}.outbox_events")
		w.fill(t, 1, ready, "'type_' || i % 40", "'kind'", "(i % 5000)::text", "0")
		for name, top := range map[string]int64{"read of what is ready": 0, "read of a window of what is ready": 4 * ready} {
			safe := read(name, 64*limit, readAll(int64(last), limit, top))
			w.inEachMode(t, "statistics of a quiet hour", safe)
			safe.name, safe.statement = "the state inside: "+name, swap(t, safe.statement, hiddenLimit, "")
			w.dearer(t, safe)
		}
	})
}

// TestSettlesInLargeTables: a settle touches a few buffers for each of its rows, however many others there are and
// whatever the statistics say of them, and never reads a table as a whole.
func TestSettlesInLargeTables(t *testing.T) {
	t.Parallel()
	const batch = 1000
	onEach(t, func(t *testing.T, w *world) {
		w.large(t)
		held, from := w.acquire(t), 0
		for _, rows := range []int{20_000, 200_000, 1_000_000} {
			w.load(t, func() {
				w.fill(t, from+1, rows, "'type_' || i % 40", "'kind'", "(i % 5000)::text",
					fmt.Sprintf("CASE WHEN i = %d OR i > %d THEN 0 ELSE 1 END", from+1, rows-batch+1))
			})
			// The newest ones, and one that is older: it may have been tried for long.
			ready := someFound(t, w, fmt.Sprintf("e.seq > %d AND e.state = 0", from))
			if len(ready) != batch {
				t.Fatalf("%d events are ready", len(ready))
			}
			published := w.settlePlan(fmt.Sprintf("settle of what was published in %d", rows), 14, &core.Settle{
				Owner: held.Owner, Lanes: allLanes(), Published: ready,
			})
			notHidden := published
			full := w.settlePlan(fmt.Sprintf("settle in %d", rows), 18, &core.Settle{
				Owner: held.Owner, Lanes: allLanes(), Published: ready, ClearNotes: []int16{1},
			})
			w.inEachMode(t, "old statistics", published, full)
			if rows == 200_000 { // the planner of PostgreSQL 15 is right again with more
				notHidden.name, notHidden.statement = "the list not hidden: "+published.name, swap(t, published.statement,
					"(SELECT $4::smallint[])", "$4::smallint[]", "(SELECT $5::bigint[])", "$5::bigint[]", hiddenLimit, "")
				w.dearer(t, notHidden)
			}
			w.exec(t, "ANALYZE {schema}.outbox_events")
			w.inEachMode(t, "fresh statistics", published, full)
			from = rows
		}
		w.exec(t, "DROP INDEX {schema}.outbox_held_line, {schema}.outbox_held_due, {schema}.outbox_held_since")
		w.load(t, func() { w.holdAll(t, "(1 + seq % 2 * 2)::smallint") })
		full := &core.Settle{Owner: held.Owner, Lanes: allLanes()}
		for i, found := range slices.Concat(someFound(t, w, "e.seq > 900000 AND e.state = 0"),
			someFound(t, w, "e.seq > 900000 AND e.seq % 100 = 0 AND e.state = 1")) {
			switch i % 5 {
			case 0, 1:
				full.Published = append(full.Published, found)
			case 2:
				full.Retry = append(full.Retry, core.Retry{Found: found})
			case 3:
				full.Park = append(full.Park, core.Park{Found: found})
			default:
				full.Dead = append(full.Dead, core.Death{Found: found, Reason: "rejected"})
			}
		}
		beside := w.settlePlan("settle beside a million held", 24, full)
		w.inEachMode(t, "without statistics", beside)
		w.exec(t, "ANALYZE {schema}.outbox_held")
		w.inEachMode(t, "fresh statistics", beside)
	})
}

// settlePlan is a settle, and what it may cost. A page that has been settled and rolled back before may have no room
// for another version: then an index is touched as well.
func (w *world) settlePlan(name string, perRow int, settle *core.Settle) planned {
	statement, args := w.store.SettleStatement(settle)
	return planned{
		name, statement, args, "outbox_events_pkey", `lane = .*lane\) AND \(seq = .*seq\) AND \(seq >= `, true, settle.Size(),
		perRow, 300,
	}
}
