package schema

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestLanesNeverChange: every event carries its lane, so the lane of an aggregate is a promise to every server version.
func TestLanesNeverChange(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		for _, golden := range []struct {
			namespace, kind, id string
			lane                int
		}{
			{"default", "order", "1", 49},
			{"default", "order", "2", 7},
			{"default", "order", "0190f5c0-0000-7000-8000-000000000001", 6},
			{"billing", "invoice", "1", 12},
			{"default", "order", "ünïcödé 🎉", 56},
			{"default", "order", strings.Repeat("x", 512), 17},
		} {
			if got := db.Count(t, "SELECT {schema}.outbox_lane($1, $2, $3)", golden.namespace, golden.kind,
				golden.id); got != golden.lane {
				t.Errorf("%.40s/%.40s/%.40s is in lane %d, want %d", golden.namespace, golden.kind, golden.id, got, golden.lane)
			}
		}
	})
}

// TestLanesSpread: numbers and UUIDs as aggregate ids fill all lanes alike. With 63 degrees of freedom
// chi-square is 63 on average and below 115 in all but one of ten thousand draws; this draw is always
// the same.
func TestLanesSpread(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		for name, id := range map[string]string{"numbers": "i::text", "UUIDs": "md5(i::text)::uuid::text"} {
			var lanes, chiSquare int
			if err := db.Pool.QueryRow(t.Context(), db.SQL(`SELECT count(*), round(sum((n - 1000) ^ 2 / 1000.0)) FROM (
				SELECT {schema}.outbox_lane('default', 
				'order', `+id+`) AS lane, count(*) AS n FROM generate_series(1, 64000) i GROUP BY 1) l
				WHERE lane BETWEEN 1 AND 64`)).Scan(&lanes, &chiSquare); err != nil {
				t.Fatal(err)
			}
			if lanes != 64 || chiSquare > 115 {
				t.Errorf("%s: %d lanes, chi-square %d", name, lanes, chiSquare)
			}
		}
	})
}

// TestTheLaneDoesNotDependOnTheSession: not on its language. All events of an aggregate are in one lane, whoever wrote
// them.
func TestTheLaneDoesNotDependOnTheSession(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		if n := db.Count(t, `SELECT count(DISTINCT lane) FROM (VALUES
			({schema}.outbox_lane('default', 'order', 'Straße' COLLATE "C")), 
			({schema}.outbox_lane('default', 'order', 'Straße' COLLATE "POSIX")),
			({schema}.outbox_lane('default', 'order', 'Straße'))) v(lane)`); n != 1 {
			t.Errorf("%d lanes for one aggregate", n)
		}
		// Every text of ours is compared by its bytes, whatever the database's language.
		if others := column(t, db.Pool, `SELECT c.relname || '.' || a.attname FROM pg_attribute a 
			JOIN pg_class c ON c.oid = a.attrelid
			WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND a.attnum > 0 
			AND a.attcollation NOT IN (0, 'pg_catalog."C"'::regcollation)`, quote(db.Schema)); len(others) > 0 {
			t.Errorf("compared by language: %v", others)
		}
	})
}

func TestThereAre64Lanes(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		if n := db.Count(t, `SELECT count(*) FROM {schema}.outbox_lanes l JOIN {schema}.outbox_meta m 
			ON m.lane_layout = l.layout
			WHERE lane BETWEEN 1 AND 64 AND owner IS NULL AND token IS NULL AND floor = 0 AND NOT crashed 
			AND crash_count = 0`); n != 64 {
			t.Errorf("%d free lanes of layout 1", n)
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_lanes"); n != 64 {
			t.Errorf("%d lanes", n)
		}
		// Half an owner is none: the relay could not give the lane back.
		for _, set := range []string{"owner = gen_random_uuid()", "token = gen_random_uuid()"} {
			if _, err := db.Pool.Exec(t.Context(), db.SQL("UPDATE {schema}.outbox_lanes SET "+set)); pgtest.SQLState(err) !=
				"23514" {
				t.Errorf("%s: got %v", set, err)
			}
		}
		if unique := column(t, db.Pool,
			"SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = $1::regclass AND indisunique",
			quote(db.Schema)+".outbox_relays"); len(unique) != 1 {
			t.Errorf("unique indexes %v: a second one would make acquisitions wait for settles", unique)
		}
	})
}

// TestAnEndedRelayHasNoLanes: who ends a relay frees its lanes, or the two would name different owners.
func TestAnEndedRelayHasNoLanes(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, leases.Join, relayOne, "first", "1 hour")
		db.Exec(t, leases.Hold, relayOne)
		end := "UPDATE {schema}.outbox_relays SET ended_at = now()"
		if _, err := db.Pool.Exec(t.Context(), db.SQL(end)); pgtest.SQLState(err) != "23514" {
			t.Errorf("ended with all lanes: got %v", err)
		}
		db.Exec(t, end+", lanes = '{}'")
	})
}
