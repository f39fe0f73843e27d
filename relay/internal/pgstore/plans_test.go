package pgstore_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// fill inserts events with their lanes: more than a few are made faster without the trigger. The columns of each are
// expressions over its number i.
func (w *world) fill(t testing.TB, from, to int, eventType, aggregateType, aggregateID, state string) {
	t.Helper()
	w.exec(t, fmt.Sprintf(`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id,
		payload_json, state, published_at)
		SELECT {schema}.outbox_lane('default', g.kind, g.aggregate), id, type, kind, aggregate, '{}', state,
		       CASE WHEN state = 6 THEN now() END
		  FROM (SELECT ('01a1ea42-05ba-7e72-b09f-' || lpad(to_hex(i), 12, '0'))::uuid AS id, %s AS type, %s AS kind,
		               %s AS aggregate, %s AS state
		          FROM generate_series(%d, %d) i OFFSET 0) g`, eventType, aggregateType, aggregateID, state, from, to))
}

// history fills the events as they are in the middle of a working day: much that is published, some that is
// ready, little that is held.
func history(t testing.TB, w *world) {
	t.Helper()
	w.fill(t, 1, 40_000, "'type_' || i % 40", "'kind_' || i % 10", "(i % 5000)::text",
		"CASE WHEN i % 10 = 0 THEN CASE WHEN i % 50 = 0 THEN 5 ELSE 1 END WHEN i % 61 = 0 THEN 7 "+
			"WHEN i > 36000 THEN 0 ELSE 6 END")
	w.holdAll(t, "(seq / 10 % 5)::smallint") // not those that are dead
	w.exec(t, "UPDATE {schema}.outbox_held SET due = now() + (seq % 200 - 100) * interval '1 minute' WHERE kind = 1")
}

// claims are the statements that the relay runs all the time, with arguments as it has them.
func claims(t testing.TB, w *world, bound int64) []planned {
	t.Helper()
	held := w.acquire(t)
	read := core.Read{Owner: held.Owner}
	for _, lane := range allLanes() {
		read.Lanes = append(read.Lanes, core.LaneRead{Lane: lane, W: bound, C: bound, Limit: 8, Window: 50_000})
	}
	readOf := func(name string, exclude []string, rows int) planned {
		read.Exclude = exclude
		statement, args := w.store.ReadStatement(read)
		return planned{
			name, statement, args, "outbox_events_pkey", `lane = l\.lane\) AND \(seq > .*\) AND \(seq <= `, false, rows, 3,
			64 * 5,
		}
	}
	ready := someFound(t, w, "e.state = 0 ORDER BY md5(e.seq::text) LIMIT 400")
	published, publishedArgs := w.store.SettleStatement(&core.Settle{
		Owner: held.Owner, Lanes: allLanes(), Published: ready[:100],
	})
	full := &core.Settle{Owner: held.Owner, Lanes: allLanes(), Published: ready[:60], Wait: ready[60:120]}
	retried := someFound(t, w, "h.kind IN (1, 3) ORDER BY md5(e.seq::text) LIMIT 120")
	for i, found := range slices.Concat(ready[120:240], retried) {
		switch i % 3 {
		case 0:
			full.Retry = append(full.Retry, core.Retry{Found: found})
		case 1:
			full.Park = append(full.Park, core.Park{Found: found})
		default:
			full.Dead = append(full.Dead, core.Death{Found: found, Reason: "rejected"})
		}
	}
	settle, settleArgs := w.store.SettleStatement(full)
	var asks []core.HeldAsk
	eight := core.HeldKeys{Lanes: core.AllLines(3, 4, 5, 6, 7, 8, 9, 10)}
	for _, key := range must(w.store.HeldKeys(t.Context(), eight))(t).Keys[:12] {
		asks = append(asks, core.HeldAsk{Lane: key.Lane, Aggregate: key.Aggregate, Types: []string{"type_0", "type_20"}})
	}
	text := func(file string) string { return pgstore.Statement(file, w.schema) }
	three, swept := []int16{3, 4, 5}, bound-5000
	types := []string{"type_0", "type_20"}
	relay, token := pgstore.Asker(held.Owner)
	dueKeys := pgstore.DueAsks(core.DueKeys{
		Owner: held.Owner,
		Lanes: []core.LaneFrom{{Lane: 3}, {Lane: 4}, {Lane: 5}}, Exclude: types, Limit: 100,
	})
	return []planned{
		readOf("read", nil, 512),
		readOf("read without types", types, 512*40/38),
		{
			"settle of what was published", published, publishedArgs, "outbox_events_pkey",
			`lane = .*lane\) AND \(seq = .*seq\) AND \(seq >= `, true, 100, 10, 100,
		},
		{
			"settle", settle, settleArgs, "outbox_events_pkey", `lane = .*lane\) AND \(seq = .*seq\) AND \(seq >= `, true, 360,
			40, 300,
		},
		{
			"due keys", text("due_keys"), dueKeys, "outbox_held_due",
			`lane = l\.lane\) AND \(kind = 1\) AND \(ROW\(due, seq\) < `, false, 60, 4, 30,
		},
		{
			"held rows", text("held_rows"), pgstore.HeldAsks(core.HeldRows{Owner: held.Owner, Asks: asks, Limit: 100}),
			"outbox_held_line",
			`lane = .*namespace = .*aggregate_type = .*aggregate_id = .*event_type = `, true, 40, 8, 80,
		},
		{
			"held keys", text("held_keys"),
			pgstore.KeysArgs(core.HeldKeys{Owner: held.Owner, Lanes: core.AllLines(three...), Limit: 1000}),
			"outbox_held_line",
			`lane = \S+\) AND \(ROW\(namespace, `, false, 150, 4, 60,
		},
		{
			"unpark", text("unpark"),
			pgstore.UnparkArgs(core.Unpark{Owner: held.Owner, Lanes: core.FromStart(3), Types: types, Limit: 100}),
			"outbox_held_since",
			`lane = .*lane\) AND \(kind = 2\)`, true, 20, 40, 60,
		},
		{
			"old parked", text("old_parked"),
			pgstore.ParkedArgs(core.OldParked{
				Owner: held.Owner, Lanes: core.FromStart(three...), Exclude: []string{"x"}, Limit: 100,
			}),
			"outbox_held_since", `lane = l\.lane\) AND \(kind = 2\) AND .*\(since <= `, true, 40, 8, 60,
		},
		{
			"sweep", text("sweep"),
			[]any{three, []int64{bound, bound, bound}, int32(100), []int64{swept, swept, swept}, relay, token},
			"outbox_events_pkey", `lane = l\.lane\) AND \(seq <= l\.floor\) AND \(seq > l\.above\)`, false, 3 * 5000 / 64, 2, 30,
		},
	}
}

// someFound are events as a reader finds them.
func someFound(t testing.TB, w *world, which string) []core.Found {
	t.Helper()
	rows, err := w.owner.Query(t.Context(), w.sql(`SELECT e.id, e.lane, e.seq, coalesce(h.version, 0)
		FROM {schema}.outbox_events e LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq WHERE `+which))
	if err != nil {
		t.Fatal(err)
	}
	return must(pgx.CollectRows(rows, func(row pgx.CollectableRow) (found core.Found, err error) {
		var id pgtype.UUID
		err = row.Scan(&id, &found.Lane, &found.Seq, &found.Version)
		found.ID = id.Bytes
		return found, err
	}))(t)
}

// wrong says what the plan does not do, or "".
func (p planned) wrong(plan string, buffers int) string {
	scan := regexp.MustCompile(`(?:Index Scan|Index Only Scan|Bitmap Index Scan)(?: Backward)?(?: using| on) ` + p.index +
		`\b`)
	at := scan.FindStringIndex(plan)
	indexes := regexp.MustCompile(`outbox_(events|held)_[a-z]+`).FindAllString(plan, -1)
	switch {
	case at == nil:
		return "does not use " + p.index
	case !regexp.MustCompile(`Index Cond: [^\n]*` + p.condition).MatchString(plan[at[0]:]):
		return "has no Index Cond like " + p.condition
	case regexp.MustCompile(`Seq Scan on outbox_(events|held)\b`).MatchString(plan):
		return "reads a whole table"
	case !p.sorts && strings.Contains(plan, "Sort"):
		return "sorts"
	case buffers > p.least+p.rows*p.perRow:
		return fmt.Sprintf("touches %d buffers for %d rows", buffers, p.rows)
	}
	for _, index := range indexes { // what is known by lane and number is found by that
		if index != p.index && index != "outbox_events_pkey" && index != "outbox_held_pkey" {
			return "uses " + index
		}
	}
	return ""
}

// inEachMode explains statements with custom and generic plans, and fails where one is wrong.
func (w *world) inEachMode(t testing.TB, when string, all ...planned) {
	t.Helper()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		conn := w.connect(t, "SET plan_cache_mode = "+mode)
		for _, p := range all {
			plan, buffers := p.plan(t, conn)
			t.Logf("%s, %s, %s: %d buffers for %d rows", p.name, mode, when, buffers, p.rows)
			if wrong := p.wrong(plan, buffers); wrong != "" {
				t.Errorf("%s, %s, %s: %s\n%s", p.name, mode, when, wrong, plan)
			}
		}
		_ = conn.Close(t.Context())
	}
}

// TestPlans: each statement uses its index and touches a few buffers a row, with custom and generic plans,
// without statistics, with those of an empty table and with fresh ones.
func TestPlans(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.quiet(t)
		w.add(t, "1", core.Published)
		w.exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_held")
		history(t, w)
		all := claims(t, w, 36_001)
		w.inEachMode(t, "statistics of an empty table", all...)
		w.exec(t, "DELETE FROM pg_statistic WHERE starelid IN ('{schema}.outbox_events'::regclass, "+
			"'{schema}.outbox_held'::regclass)")
		w.inEachMode(t, "without statistics", all...)
		w.exec(t, "UPDATE pg_class SET reltuples = 0 WHERE oid = '{schema}.outbox_held'::regclass")
		w.inEachMode(t, "statistics of when nothing was held any more", all...)
		w.exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_held")
		w.inEachMode(t, "fresh statistics", all...)
		// Without its index no statement passes for one that uses it.
		w.exec(t, "DROP INDEX {schema}.outbox_held_line, {schema}.outbox_held_due, {schema}.outbox_held_since")
		w.exec(t, "ALTER TABLE {schema}.outbox_events DROP CONSTRAINT outbox_events_pkey")
		conn := w.connect(t, "")
		for _, p := range all {
			if plan, buffers := p.plan(t, conn); p.wrong(plan, buffers) == "" {
				t.Errorf("%s passes without %s:\n%s", p.name, p.index, plan)
			}
		}
	})
}

// TestAQueueBehindHeldHeads: a new owner learns what is held, and reads and unparks it, at the price of the heads, not
// of what waits behind them.
func TestAQueueBehindHeldHeads(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		const aggregates, types, waiting = 500, 4, 300_000
		w.large(t)
		w.load(t, func() {
			w.fill(t, 0, waiting, fmt.Sprintf("'type_' || i / %d %% %d", aggregates, types), "'kind'",
				fmt.Sprintf("(i %% %d)::text", aggregates), "1")
			w.holdAll(t, fmt.Sprintf("(CASE WHEN seq > %d THEN 3 WHEN seq <= 50 THEN 2 ELSE 1 END)::smallint", aggregates))
		})
		held, lanes := w.acquire(t), allLanes()
		keys := must(w.store.HeldKeys(t.Context(), core.HeldKeys{Owner: held.Owner, Lanes: core.AllLines(lanes...)}))(t).Keys
		if len(keys) != aggregates*types {
			t.Fatalf("%d are held, want %d", len(keys), aggregates*types)
		}
		var asks []core.HeldAsk
		for _, key := range keys[:256] {
			asks = append(asks, core.HeldAsk{
				Lane: key.Lane, Aggregate: key.Aggregate, Types: []string{key.EventType, "another"},
			})
		}
		text := func(file string) string { return pgstore.Statement(file, w.schema) }
		due := core.DueKeys{Owner: held.Owner, Exclude: []string{"x"}, Limit: 100}
		for _, lane := range lanes {
			due.Lanes = append(due.Lanes, core.LaneFrom{Lane: lane})
		}
		for _, statistics := range []string{"without statistics", "fresh statistics"} {
			if statistics == "fresh statistics" {
				w.exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_held")
			}
			w.inEachMode(t, statistics, planned{
				"held keys", text("held_keys"),
				pgstore.KeysArgs(core.HeldKeys{Owner: held.Owner, Lanes: core.AllLines(lanes...)}),
				"outbox_held_line",
				`lane = \S+\) AND \(ROW\(namespace, `, false, len(keys), 6, 64 * 6,
			}, planned{
				"held rows", text("held_rows"), pgstore.HeldAsks(core.HeldRows{Owner: held.Owner, Asks: asks, Limit: 2}),
				"outbox_held_line", `lane = .*event_type = `, true, 2 * len(asks), 10, 100,
			}, planned{
				"due keys", text("due_keys"), pgstore.DueAsks(due), "outbox_held_due",
				`lane = l\.lane\) AND \(kind = 1\) AND \(ROW\(due, seq\) < `, false, 450, 2, 64 * 4,
			}, planned{
				"unpark", text("unpark"),
				pgstore.UnparkArgs(core.Unpark{
					Owner: held.Owner, Lanes: core.FromStart(lanes...), Types: []string{"type_0"}, Limit: 1000,
				}),
				"outbox_held_since",
				`lane = .*lane\) AND \(kind = 2\)`, true, 50, 40, 64 * 4,
			}, planned{
				"old parked", text("old_parked"),
				pgstore.ParkedArgs(core.OldParked{
					Owner: held.Owner, Lanes: core.FromStart(lanes...), Exclude: []string{"x"}, Limit: 100,
				}),
				"outbox_held_since", `lane = l\.lane\) AND \(kind = 2\)`, true, 50, 8, 64 * 4,
			})
		}
	})
}

// TestTypesThatTheStatisticsDoNotKnow: nearly all that was held at the last ANALYZE is of types that are left out, and
// retries of another have become due since. The planner expects hardly a row; with the types inside the hidden limit it
// would read and sort all that is due.
func TestTypesThatTheStatisticsDoNotKnow(t *testing.T) {
	t.Parallel()
	const known, unknown, limit = 24_000, 8_000, 10
	onEach(t, func(t *testing.T, w *world) {
		w.large(t)
		w.load(t, func() {
			w.fill(t, 1, known, "CASE WHEN i % 1000 = 0 THEN 'rare' ELSE 'type_' || i % 3 END", "'kind'", "(i % 5000)::text",
				"1")
			w.holdAll(t, "1::smallint")
			w.exec(t, "UPDATE {schema}.outbox_held SET due = due - seq * 7919 % 10007 * interval '1 second'")
		})
		w.exec(t, "ANALYZE {schema}.outbox_held")
		w.fill(t, 1, unknown, "'type_3'", "'kind'", "(i % 5000)::text", "1")
		w.holdAll(t, "1::smallint")
		due := core.DueKeys{Exclude: []string{"type_0", "type_1", "type_2"}, Limit: limit}
		for _, lane := range allLanes() {
			due.Lanes = append(due.Lanes, core.LaneFrom{Lane: lane})
		}
		safe := planned{
			"due keys", statement("due_keys", w), pgstore.DueAsks(due), "outbox_held_due",
			`lane = l\.lane\) AND \(kind = 1\) AND \(ROW\(due, seq\) < `, false, 64 * limit, 2, 64 * 4,
		}
		w.inEachMode(t, "old statistics", safe)
		safe.name, safe.statement = "the types inside: due keys", swap(t, safe.statement, hiddenLimit, "",
			"NOT IN (SELECT unnest($2::text[]))", "<> ALL($2::text[])")
		w.dearer(t, safe)
	})
}

// quiet keeps the server from vacuuming and analysing before its time.
func (w *world) quiet(t testing.TB) {
	t.Helper()
	for _, table := range []string{"outbox_events", "outbox_held"} {
		w.exec(t, "ALTER TABLE {schema}."+table+" SET (autovacuum_enabled = false)")
	}
}

// large is quiet, and drops the indexes that few plans are about: many rows are made faster without.
func (w *world) large(t testing.TB) {
	t.Helper()
	w.quiet(t)
	w.exec(t, "DROP INDEX {schema}.outbox_events_aggregate, {schema}.outbox_events_id")
}

// load makes many rows without any index, and the indexes from them. What the planner knows of the tables is as before.
func (w *world) load(t testing.TB, insert func()) {
	t.Helper()
	const tables = "('{schema}.outbox_events'::regclass, '{schema}.outbox_held'::regclass)"
	list := func(query string) []string {
		return must(pgx.CollectRows(must(w.owner.Query(t.Context(), w.sql(query)))(t), pgx.RowTo[string]))(t)
	}
	drop := list(`SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
		WHERE contype = 'p' AND conrelid IN ` + tables + `
		UNION ALL SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index
		WHERE NOT indisprimary AND indrelid IN ` + tables)
	again := list(`SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname,
		pg_get_constraintdef(oid)) FROM pg_constraint WHERE contype = 'p' AND conrelid IN ` + tables + `
		UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE NOT indisprimary AND indrelid IN ` + tables + `
		UNION ALL SELECT format('UPDATE pg_class SET relpages = %s, reltuples = %s WHERE oid = %s', relpages, reltuples, oid)
		FROM pg_class WHERE oid IN ` + tables)
	for _, statement := range drop {
		w.exec(t, statement)
	}
	insert()
	for _, statement := range again {
		w.exec(t, statement)
	}
}
