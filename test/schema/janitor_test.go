package schema

import (
	"testing"

	"github.com/posthaste-dev/posthaste/test/pgtest"
)

// TestTheJanitorsRoleCarriesItsStatements: retention deletes what is old and finished, with nothing but
// the janitor's grants, and leaves what somebody still needs.
func TestTheJanitorsRoleCarriesItsStatements(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		janitor := asPart(t, db, "janitor")
		for state := range 8 {
			insertEvent(t, db, "1", state)
		}
		wanted := insertEvent(t, db, "1", 6)
		db.Exec(t, "INSERT INTO {schema}.outbox_requests (action_id, event_id, event_seq, layout, lane) VALUES ($1, $2, 1, 1, 1)",
			insertAction(t, db, "redeliver", wanted, nil), wanted)
		for _, key := range []string{"a", "b"} {
			db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => $1)", key)
		}
		dead := insertEvent(t, db, "1", 4)
		insertDeadLetter(t, db, dead)
		insertAction(t, db, "redrive", dead, insertDeadLetter(t, db, dead))

		for _, c := range []struct {
			statement string
			deleted   int64
		}{
			{retentionSQL, 1}, {dedupeRetentionSQL, 2}, {deadLetterRetentionSQL, 1},
		} {
			for _, run := range []struct {
				horizon string
				want    int64
			}{{"2000-01-01", 0}, {"2999-01-01", c.deleted}, {"2999-01-01", 0}} {
				answer, err := janitor.Exec(t.Context(), db.SQL(c.statement), run.horizon)
				if err != nil || answer.RowsAffected() != run.want {
					t.Errorf("before %s: %d rows, want %d (%v)\n%s", run.horizon, answer.RowsAffected(), run.want, err, c.statement)
				}
			}
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE id = $1", wanted); n != 1 {
			t.Error("an event that shall be delivered again is gone")
		}
	})
}
