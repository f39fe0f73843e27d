package schema

import (
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestStatusHasAWordForEveryState, and shows it to the viewer with the holder of the lane.
func TestStatusHasAWordForEveryState(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		viewer := asPart(t, db, "viewer")
		status := func(id string) (word string, blocks, owned bool) {
			t.Helper()
			err := viewer.QueryRow(t.Context(),
				db.SQL("SELECT status, blocks_aggregate, lane_owner IS NOT NULL FROM {schema}.outbox_status WHERE id = $1"),
				id).Scan(&word, &blocks, &owned)
			if err != nil {
				t.Fatal(err)
			}
			return word, blocks, owned
		}
		ids := map[int]string{}
		for state, want := range []string{
			"pending", "retrying", "parked", "blocked", "dead", "dead", "published", "discarded",
		} {
			ids[state] = insertEvent(t, db, "1", state)
			if word, blocks, owned := status(ids[state]); word != want || blocks != (state == 4) || owned {
				t.Errorf("state %d is %q, blocks %t, owned %t", state, word, blocks, owned)
			}
		}
		db.Exec(t, leases.Join, relayOne, "first", "1 hour")
		db.Exec(t, leases.Hold, relayOne)
		if word, _, owned := status(ids[0]); word != "processing" || !owned {
			t.Errorf("with a live holder a ready event is %q, owned %t", word, owned)
		}
		db.Exec(t, leases.Expire, "first")
		if word, _, owned := status(ids[0]); word != "pending" || !owned {
			t.Errorf("with an expired holder a ready event is %q, owned %t", word, owned)
		}
	})
}

// TestStatusAsksAsTheReader: the view lends nobody its owner's rights.
func TestStatusAsksAsTheReader(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		if n := db.Count(t, "SELECT count(*) FROM pg_class WHERE oid = '{schema}.outbox_status'::regclass AND "+
			"'security_invoker=true' = ANY (reloptions)"); n != 1 {
			t.Error("security_invoker is not set")
		}
		role := pgtest.NewRole(t, db.Server, "half")
		db.Exec(t, "GRANT USAGE ON SCHEMA {schema} TO "+quote(role))
		db.Exec(t, "GRANT SELECT ON {schema}.outbox_status TO "+quote(role))
		if _, err := openPool(t, pgtest.As(t, db.URL, role)).Exec(t.Context(),
			db.SQL("SELECT id FROM {schema}.outbox_status")); pgtest.SQLState(err) != "42501" {
			t.Errorf("with the view alone: got %v", err)
		}
	})
}
