package schema

import (
	"context"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// The ways to change a payload that are no erasure.
var changesOfPayloads = []string{
	"UPDATE {schema}.outbox_events SET payload_json = '{}'",
	"UPDATE {schema}.outbox_events SET headers = NULL",
	"UPDATE {schema}.outbox_dlq SET payload_json = '{}'",
	"UPDATE {schema}.outbox_dlq SET headers = NULL",
	"UPDATE {schema}.outbox_dlq SET error_detail = ''",
	"UPDATE {schema}.outbox_events SET aggregate_id = '2'",
}

// TestNobodyErasesByHand: not the owner, who is superuser here, whatever the session has set, and not in a transaction
// in which something was erased: before, after, or in another at the same time.
func TestNobodyErasesByHand(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		event, other := insertEvent(t, db, "1", 6), insertEvent(t, db, "1", 5)
		insertDeadLetter(t, db, other)
		for _, setting := range []string{
			"SET LOCAL outbox.erasing = 'on'", "SET LOCAL posthaste.erasing = 'true'",
			"SELECT {schema}.outbox_erase('ada', 'why', '{" + event + "}')",
			"SELECT {schema}.outbox_erase('ada', 'why', '{}')",
			"SAVEPOINT one; SELECT {schema}.outbox_erase('ada', 'why', '{" + event + "}'); ROLLBACK TO one",
			"SELECT",
		} {
			for _, change := range changesOfPayloads {
				wantRejected(t, db, "BEGIN; "+setting+"; "+change+"; COMMIT")
			}
		}
		// While another transaction erases, and has not ended.
		tx, err := db.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := tx.Exec(t.Context(), db.SQL("SELECT {schema}.outbox_erase('ada', 'why', $1::text[]::uuid[])"),
			[]string{event}); err != nil {
			t.Fatal(err)
		}
		for _, change := range changesOfPayloads {
			wantRejected(t, db, change)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_meta WHERE erasing IS NULL"); n != 1 {
			t.Error("the leave to erase has outlived the erasure")
		}
		wantRejected(t, db, "DELETE FROM {schema}.outbox_actions")
	})
}

// TestErasureOnPartitions: the guards are there as well, and the function gets through them.
func TestErasureOnPartitions(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		partitioned(t, db)
		db.Exec(t, "UPDATE {schema}.outbox_events SET state = 6 WHERE seq IN (1, 20, 1100)") // one of each
		for _, table := range []string{"outbox_events", "outbox_events_old", "outbox_events_1", "outbox_events_2"} {
			wantRejected(t, db, "UPDATE {schema}."+table+" SET headers = NULL")
			wantRejected(t, db, "UPDATE {schema}."+table+" SET aggregate_id = '2'")
		}
		if n := db.Count(t, `SELECT count(*) FROM {schema}.outbox_erase('ada', 'why', ARRAY(
			SELECT id FROM {schema}.outbox_events WHERE seq < 25 OR seq = 1100)) WHERE outcome = 'done'`); n != 3 {
			t.Errorf("%d of 3 events are erased", n)
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE payload_json -> 'erased' IS NOT NULL "+
			"AND state = 6"); n != 3 {
			t.Errorf("%d of 3 payloads are gone", n)
		}
	})
}
