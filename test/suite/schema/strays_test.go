package schema

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestTheRunbookMovesStrays: docs/operate/operations.md moves what is in another lane than its aggregate, and all that
// names the lane with it. A request that stays behind fails, since no event is there.
func TestTheRunbookMovesStrays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/operate/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## Events in another lane\n")
	_, rest, begun := strings.Cut(rest, "```sql\nBEGIN;\n")
	script, _, ended := strings.Cut(rest, "COMMIT;\n```")
	if !found || !begun || !ended {
		t.Fatal("docs/operate/operations.md does not say how")
	}
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		// Of one aggregate, an event in its lane and three in the next one: parked, published with a request, and discarded.
		const lane = "1 + ({schema}.outbox_lane('default', 'order', '1') - 1 + $1::int) % 64"
		for state, stray := range map[int]int{0: 0, 1: 1, 6: 1, 7: 1} {
			db.Exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json,
				state, published_at) SELECT `+lane+`, gen_random_uuid(), 'order_created', 'order', '1', '{}', $2::int,
				CASE $2::int WHEN 6 THEN now() END`, stray, state)
		}
		db.Exec(t, `INSERT INTO {schema}.outbox_held (lane, seq, kind, namespace, event_type, aggregate_type, aggregate_id)
			SELECT lane, seq, 2, namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_events
			 WHERE state = 1`)
		db.Exec(t, `SELECT {schema}.outbox_redeliver('ada', 'the table was lost', ARRAY(SELECT id FROM {schema}.outbox_events
			WHERE state = 6))`)
		const strays = `SELECT count(*) FROM (
			SELECT lane FROM {schema}.outbox_events UNION ALL SELECT lane FROM {schema}.outbox_held
			UNION ALL SELECT lane FROM {schema}.outbox_requests) l
			WHERE lane <> {schema}.outbox_lane('default', 'order', '1')`
		if n := db.Count(t, strays); n != 5 {
			t.Fatalf("%d rows are in another lane, and not 5", n)
		}
		tx := db.Begin(t)
		for _, statement := range []string{"SET LOCAL search_path = " + quote(db.Schema), script} {
			if _, err := tx.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := db.Count(t, strays); n != 0 {
			t.Errorf("%d rows are in another lane still", n)
		}
		if n := db.Count(t, `SELECT count(*) FROM {schema}.outbox_requests r JOIN {schema}.outbox_events e
			ON e.lane = r.lane AND e.seq = r.event_seq AND e.id = r.event_id`); n != 1 {
			t.Errorf("%d of 1 requests find their event", n)
		}
	})
}
