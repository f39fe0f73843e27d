package pgstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// history fills the events as they are in the middle of a working day: much that is published, some that is
// ready, little that is held.
func history(t testing.TB, w *world) {
	t.Helper()
	w.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, 
		published_at, next_attempt_at)
		SELECT id, 'type_' || i % 40, 'kind_' || i % 10, (i % 5000)::text, ('{"eventId":"' || id || '"}')::json, state,
		       CASE WHEN state = 6 THEN now() - (40000 - i) * interval '1 minute' END, 
		       CASE WHEN state = 1 THEN now() + (i % 200 - 100) * interval '1 minute' END
		  FROM (SELECT {schema}.outbox_uuid7() AS id, i, CASE WHEN i % 60 = 0 THEN 1 + i / 60 % 5 WHEN i % 61 = 0 THEN 7 
		  WHEN i > 36000 THEN 0 ELSE 6 END AS state
		          FROM generate_series(1, 40000) i OFFSET 0) g`)
}

// A planned statement has the index it was made for.
type planned struct {
	name      string
	statement string
	args      []any
	index     string
	condition string // a regular expression that the Index Cond of that index must match
	sorts     bool   // whether the plan may sort
	// perRow and least bound the buffers: least + perRow for every row that is read or changed.
	rows, perRow, least int
}

const laneExpression = `hashtextextended.*::smallint\)? = `

// claims are the statements that the relay runs all the time, with arguments as it has them.
func claims(t testing.TB, w *world) []planned {
	t.Helper()
	held := w.acquire(t)
	read := core.Read{Owner: held.Owner}
	for lane := range int16(64) {
		read.Lanes = append(read.Lanes, core.LaneRead{Lane: lane, W: 36000, C: 36000, Limit: 8})
	}
	readOf := func(name string, exclude []string, rows int) planned {
		read.Exclude = exclude
		statement, args := w.store.ReadStatement(read)
		return planned{
			name, statement, args, "outbox_events_ready", laneExpression + `l\.lane\) AND \(seq > GREATEST\(l\.w, LEAST\(l\.c`,
			false, rows, 3, 64 * 5,
		}
	}
	ready := someIDs(t, w, "state = 0 ORDER BY md5(seq::text) LIMIT 300")
	published, publishedArgs := w.store.SettleStatement(&core.Settle{
		Owner: held.Owner, Lanes: []int16{3}, Published: ready[:100],
	})
	full := &core.Settle{Owner: held.Owner, Lanes: []int16{3}, Published: ready[:60], Wait: ready[60:120]}
	for i, id := range ready[120:] {
		switch i % 3 {
		case 0:
			full.Retry = append(full.Retry, core.Retry{ID: id})
		case 1:
			full.Park = append(full.Park, core.Park{ID: id})
		default:
			full.Dead = append(full.Dead, core.Death{ID: id, Reason: "rejected"})
		}
	}
	settle, settleArgs := w.store.SettleStatement(full)
	var asks []core.HeldAsk
	eight := core.HeldKeys{Lanes: []int16{3, 4, 5, 6, 7, 8, 9, 10}}
	for _, key := range must(w.store.HeldKeys(t.Context(), eight))(t).Keys[:12] {
		asks = append(asks, core.HeldAsk{Lane: key.Lane, Aggregate: key.Aggregate, Types: []string{"type_0", "type_20"}})
	}
	text := func(file string) string { return pgstore.Statement(file, w.schema) }
	three := []int16{3, 4, 5}
	types := []string{"type_0", "type_20"}
	relay, token := pgstore.Asker(held.Owner)
	dueKeys := pgstore.DueAsks(core.DueKeys{
		Owner: held.Owner,
		Lanes: []core.DueLane{{Lane: 3}, {Lane: 4}, {Lane: 5}}, Exclude: types, Limit: 100,
	})
	return []planned{
		readOf("read", nil, 512),
		readOf("read without types", types, 512*40/38),
		{"settle of what was published", published, publishedArgs, "outbox_events_pkey", `id = ANY`, true, 100, 40, 100},
		{"settle", settle, settleArgs, "outbox_events_pkey", `id = `, true, 300, 40, 300},
		{
			"due keys", text("due_keys"), dueKeys, "outbox_events_due",
			laneExpression + `.*state = 1.*ROW\(next_attempt_at, seq\) < `, false, 12, 4, 30,
		},
		{
			"held rows", text("held_rows"), pgstore.HeldAsks(core.HeldRows{Owner: held.Owner, Asks: asks, Limit: 100}),
			"outbox_events_held",
			laneExpression + `.*namespace = .*aggregate_type = .*aggregate_id = .*event_type = `, true, 40, 4, 60,
		},
		{
			"held keys", text("held_keys"),
			[]any{three, relay, token},
			"outbox_events_held", laneExpression + `.*ROW\(namespace, `,
			false, 30, 4, 60,
		},
		{
			"unpark", text("unpark"),
			[]any{relay, token, []int16{3}, types, int32(100)},
			"outbox_events_due",
			laneExpression + `.*state = 2`, true, 20, 40, 60,
		},
		{
			"old parked", text("old_parked"),
			[]any{three, int64(0), int32(100), types, relay, token},
			"outbox_events_due",
			laneExpression + `.*state = 2`, false, 30, 4, 60,
		},
		{
			"sweep", text("sweep"),
			[]any{three, []int64{36000, 36000, 36000}, int32(100), []int64{0, 0, 0}, relay, token},
			"outbox_events_ready", laneExpression + `.*seq <= `, false, 0, 4, 30,
		},
	}
}

func someIDs(t testing.TB, w *world, which string) []outbox.ID {
	t.Helper()
	rows, err := w.owner.Query(t.Context(), w.sql("SELECT id FROM {schema}.outbox_events WHERE "+which))
	if err != nil {
		t.Fatal(err)
	}
	found := must(pgx.CollectRows(rows, pgx.RowTo[pgtype.UUID]))(t)
	list := make([]outbox.ID, len(found))
	for i, id := range found {
		list[i] = id.Bytes
	}
	return list
}

// plan prepares the statement and explains a run of it, which is rolled back.
func (p planned) plan(t testing.TB, conn *pgx.Conn) (text string, buffers int) {
	t.Helper()
	var args []string
	for _, arg := range p.args {
		kind, ok := conn.TypeMap().TypeForValue(arg)
		if !ok {
			t.Fatalf("%s: %T", p.name, arg)
		}
		encoded := must(conn.TypeMap().Encode(kind.OID, pgtype.TextFormatCode, arg, nil))(t)
		if encoded == nil {
			args = append(args, "NULL")
			continue
		}
		args = append(args, "'"+strings.ReplaceAll(string(encoded), "'", "''")+"'")
	}
	execute := "EXECUTE p (" + strings.Join(args, ", ") + ")"
	tx := must(conn.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, statement := range []string{"DEALLOCATE ALL", "PREPARE p AS " + p.statement} {
		if _, err := tx.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	rows, err := tx.Query(t.Context(), "EXPLAIN (COSTS OFF) "+execute, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	text = strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
	var answer []byte
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+execute,
		pgx.QueryExecModeSimpleProtocol).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	var explained []struct{ Plan node }
	if err := json.Unmarshal(answer, &explained); err != nil {
		t.Fatal(err)
	}
	return text, explained[0].Plan.buffers() + explained[0].Plan.changes()
}

// A node of a plan, with the buffers of everything below it.
type node struct {
	Type  string `json:"Node Type"`
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Plans []node
}

func (n node) buffers() int { return n.Hit + n.Read }

// changes are the buffers of updates and inserts beside the answer: they run behind the top node, which
// does not count them.
func (n node) changes() (sum int) {
	for _, below := range n.Plans {
		if below.Type == "ModifyTable" {
			sum += below.buffers()
		} else {
			sum += below.changes()
		}
	}
	return sum
}

// wrong says what the plan does not do, or "".
func (p planned) wrong(plan string, buffers int) string {
	scan := regexp.MustCompile(`(?:Index Scan|Index Only Scan|Bitmap Index Scan)(?: Backward)?(?: using| on) ` + p.index +
		`\b`)
	at := scan.FindStringIndex(plan)
	switch {
	case at == nil:
		return "does not use " + p.index
	case !regexp.MustCompile(`Index Cond: [^\n]*` + p.condition).MatchString(plan[at[0]:]):
		return "has no Index Cond like " + p.condition
	case regexp.MustCompile(`Seq Scan on outbox_events\b`).MatchString(plan):
		return "reads the whole table"
	case p.index == "outbox_events_pkey" && regexp.MustCompile(`outbox_events_(ready|held|due)`).MatchString(plan),
		p.index != "outbox_events_held" && strings.Contains(plan, "outbox_events_held"),
		strings.Count(plan, "outbox_events_due") > 1:
		return "looks for rows whose ids it has"
	case strings.Contains(plan, "outbox_events_event_type") || strings.Contains(plan, "outbox_events_aggregate"):
		return "uses an index over all events"
	case !p.sorts && strings.Contains(plan, "Sort"):
		return "sorts"
	case buffers > p.least+p.rows*p.perRow, p.index == "outbox_events_pkey" && buffers < p.rows:
		return fmt.Sprintf("touches %d buffers for %d rows", buffers, p.rows)
	}
	return ""
}

func (w *world) connect(t testing.TB, settings string) *pgx.Conn {
	t.Helper()
	pooled := must(w.pool.Acquire(t.Context()))(t)
	conn := pooled.Hijack()
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "SET statement_timeout = 0; "+settings); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestPlans: each statement uses its index and touches a few buffers a row, with custom and generic plans,
// without statistics, with those of an empty table and with fresh ones.
func TestPlans(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.exec(t, "ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = false)") // no ANALYZE before its time
		w.add(t, "1", core.Published)
		w.exec(t, "ANALYZE {schema}.outbox_events")
		history(t, w)
		all := claims(t, w)
		for _, statistics := range []string{"stale", "none", "fresh"} {
			switch statistics {
			case "none":
				w.exec(t, "DELETE FROM pg_statistic WHERE starelid = '{schema}.outbox_events'::regclass")
			case "fresh":
				w.exec(t, "ANALYZE {schema}.outbox_events")
			}
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				conn := w.connect(t, "SET plan_cache_mode = "+mode)
				for _, p := range all {
					plan, buffers := p.plan(t, conn)
					t.Logf("%s, %s, statistics %s: %d buffers for %d rows", p.name, mode, statistics, buffers, p.rows)
					if wrong := p.wrong(plan, buffers); wrong != "" {
						t.Errorf("%s, %s, statistics %s: %s\n%s", p.name, mode, statistics, wrong, plan)
					}
				}
			}
		}
		// Without its index no statement passes for one that uses it.
		w.exec(t, "DROP INDEX {schema}.outbox_events_ready, {schema}.outbox_events_held, {schema}.outbox_events_due")
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
		for _, statement := range []string{
			"ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = false)",
			"ALTER TABLE {schema}.outbox_events DISABLE TRIGGER outbox_events_check", // the rows are made faster without it
			// and without the indexes that this is not about
			"DROP INDEX {schema}.outbox_events_aggregate, {schema}.outbox_events_event_type",
			fmt.Sprintf(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, 
				next_attempt_at)
				SELECT {schema}.outbox_uuid7(), 'type_' || i / %[1]d %% %[2]d, 'kind', (i %% %[1]d)::text, '{}',
				       CASE WHEN i >= %[1]d THEN 3 WHEN i < 50 THEN 2 ELSE 1 END, now() FROM generate_series(0, %[3]d) i`,
				aggregates, types, waiting),
		} {
			w.exec(t, statement)
		}
		held, lanes := w.acquire(t), allLanes()
		relay, token := pgstore.Asker(held.Owner)
		keys := must(w.store.HeldKeys(t.Context(), core.HeldKeys{Owner: held.Owner, Lanes: lanes}))(t).Keys
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
		for _, statistics := range []string{"none", "fresh"} {
			if statistics == "fresh" {
				w.exec(t, "ANALYZE {schema}.outbox_events")
			}
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				conn := w.connect(t, "SET plan_cache_mode = "+mode)
				for _, p := range []planned{
					{
						"held keys", text("held_keys"),
						[]any{lanes, relay, token},
						"outbox_events_held", laneExpression + `.*ROW\(namespace, `, false,
						len(keys), 6, 64 * 6,
					},
					{
						"held rows", text("held_rows"), pgstore.HeldAsks(core.HeldRows{Owner: held.Owner, Asks: asks, Limit: 2}),
						"outbox_events_held",
						laneExpression + `.*event_type = `, true, 2 * len(asks), 8, 100,
					},
					{
						"unpark", text("unpark"),
						[]any{relay, token, []int16{3}, []string{"type_0"}, int32(100)},
						"outbox_events_due", laneExpression + `.*state = 2`, true, 5, 40, 60,
					},
					{
						"old parked", text("old_parked"),
						[]any{lanes, int64(0), int32(100), []string{"x"}, relay, token},
						"outbox_events_due",
						laneExpression + `.*state = 2`, false, 50, 4, 64 * 4,
					},
				} {
					plan, buffers := p.plan(t, conn)
					t.Logf("%s, %s, statistics %s: %d buffers for %d rows", p.name, mode, statistics, buffers, p.rows)
					if wrong := p.wrong(plan, buffers); wrong != "" {
						t.Errorf("%s, %s, statistics %s: %s\n%s", p.name, mode, statistics, wrong, plan)
					}
				}
			}
		}
	})
}

// TestAMillionDeadRows: rows that were settled while somebody's snapshot holds them are still in the index
// of ready rows. A read that begins above them does not meet them, nor does a settle.
func TestAMillionDeadRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres18())
	for _, statement := range []string{
		"ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = false)",
		// the rows are made faster without it, and no other
		"ALTER TABLE {schema}.outbox_events DISABLE TRIGGER outbox_events_check",
		// And without the indexes that this is not about; the primary key comes back.
		"DROP INDEX {schema}.outbox_events_aggregate, {schema}.outbox_events_event_type, {schema}.outbox_events_published_at",
		"ALTER TABLE {schema}.outbox_events DROP CONSTRAINT outbox_events_pkey",
		`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		 SELECT {schema}.outbox_uuid7(), 'type_' || i % 40, 'kind', (i % 5000)::text, '{}' 
		 FROM generate_series(1, 1000000) i`,
	} {
		w.exec(t, statement)
	}
	snapshot := must(w.owner.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
	defer func() { _ = snapshot.Rollback(t.Context()) }()
	if _, err := snapshot.Exec(t.Context(), w.sql("SELECT count(*) FROM {schema}.outbox_lanes")); err != nil {
		t.Fatal(err)
	}
	w.exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now()")
	w.exec(t, "ALTER TABLE {schema}.outbox_events ADD CONSTRAINT outbox_events_pkey PRIMARY KEY (id)")
	w.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, 
		next_attempt_at)
		SELECT {schema}.outbox_uuid7(), 'type_' || i % 40, 'kind_' || i % 10, (i % 5000)::text, '{}', 
		CASE WHEN i % 60 = 0 THEN 1 ELSE 0 END, now() FROM generate_series(1, 20000) i`)
	above := claims(t, w)[:6]
	for i := range 2 {
		read := core.Read{}
		for lane := range int16(64) {
			read.Lanes = append(read.Lanes, core.LaneRead{Lane: lane, W: 1000000, C: 1000000, Limit: 8})
		}
		if i == 1 {
			read.Exclude = []string{"type_0", "type_20"}
		}
		_, above[i].args = w.store.ReadStatement(read)
	}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		conn := w.connect(t, "SET plan_cache_mode = "+mode)
		for _, p := range above {
			plan, buffers := p.plan(t, conn)
			t.Logf("%s, %s: %d buffers", p.name, mode, buffers)
			if wrong := p.wrong(plan, buffers); wrong != "" {
				t.Errorf("%s, %s: %s\n%s", p.name, mode, wrong, plan)
			}
		}
		// From below it must be seen that the dead rows are there.
		below := above[0]
		_, below.args = w.store.ReadStatement(core.Read{Lanes: []core.LaneRead{{Lane: 3, Limit: 8}}})
		if _, buffers := below.plan(t, conn); buffers < 5000 {
			t.Errorf("a read of one lane from below touches %d buffers: this test does not test", buffers)
		}
	}
}
