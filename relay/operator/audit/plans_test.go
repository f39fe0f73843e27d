package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/operator/audit"
)

// TestAuditsUseTheirIndexes: no statement reads the table from end to end or sorts it, also where the ids lie in the
// table as they please, and where the statistics are of an empty table.
func TestAuditsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_pruned") // of nothing
		e.exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, state,
				published_at, payload_json)
			SELECT 1 + i % 64, (substr(md5(i::text), 1, 12) || '7' || substr(md5(i::text), 13, 3) || '8' ||
				substr(md5(i::text), 16, 15))::uuid, 'type_' || i % 10, 'order', (i % 5000)::text, 6, now(), '{}'
			FROM generate_series(1, 20000) i`)
		e.exec(t, `INSERT INTO {schema}.outbox_pruned (first_seq, last_seq, events)
			SELECT 100000 + 10 * i, 100000 + 10 * i, 1 FROM generate_series(1, 2000) i`)
		const low, high = "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e", "ffffffff-ffff-ffff-ffff-ffffffffffff"
		for _, round := range []string{"stale", "fresh"} {
			if round == "fresh" {
				e.exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_pruned")
			}
			for name, c := range map[string]struct {
				args  []any
				index []string
			}{
				"page":    {[]any{low, high, 2000}, []string{"Index Scan using outbox_events_id"}},
				"by_id":   {[]any{[]string{low, high}}, []string{"outbox_events_id"}},
				"explain": {[]any{[]int64{5, 100_015}}, []string{"outbox_pruned_pkey", "outbox_events_pkey"}},
				"highest": {nil, []string{"outbox_pruned_pkey", "outbox_events_pkey"}},
				"next":    {[]any{int64(50_000)}, []string{"outbox_pruned_pkey", "outbox_events_pkey"}},
				"gaps":    {[]any{int64(1), int64(50_000)}, []string{"outbox_pruned_pkey", "outbox_events_pkey"}},
				"in_use":  {[]any{time.Now()}, []string{"outbox_minutes_pkey"}},
			} {
				plan := e.plan(t, audit.Statement(e.schema, name), c.args...)
				for _, index := range append(c.index, "") {
					if !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan on outbox_events e") ||
						strings.Contains(plan, "Seq Scan on outbox_pruned") {
						t.Errorf("%s, %s statistics:\n%s", name, round, plan)
						break
					}
				}
			}
		}
	})
}

// plan is how the viewer's session would run it.
func (e *env) plan(t *testing.T, statement string, args ...any) string {
	t.Helper()
	tx, err := e.viewer.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), audit.Statement(e.schema, "begin"), "30s"); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(t.Context(), "EXPLAIN (COSTS OFF) "+statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
