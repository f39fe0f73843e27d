package schema

import (
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestTheHighestNumberIsLookedUp: a relay that starts compares the sequence with the highest number in use. That must
// not take longer the more events there are.
func TestTheHighestNumberIsLookedUp(t *testing.T) {
	t.Parallel()
	const lanes = 64
	onEach(t, func(t *testing.T, server pgtest.Server) {
		db := pgtest.New(t, server)
		fill(t, db, 10_000, 500)
		db.Exec(t, "ANALYZE {schema}.outbox_events")
		all := explain(t, db, db.Pool, "SELECT count(payload_json::text) FROM {schema}.outbox_events").buffers
		found := explain(t, db, db.Pool, fileSQL(t, "sql/sequence")).buffers
		t.Logf("%d buffers, the whole table is %d", found, all)
		if most := lanes * 5; found > most || all < 3*most {
			t.Errorf("%d buffers, want %d at most; the whole table is %d", found, most, all)
		}
	})
}
