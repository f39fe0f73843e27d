package schema

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/test/pgtest"
)

// asPart connects a role that was granted one part, with an empty search_path.
func asPart(t testing.TB, db *pgtest.DB, part string) *pgxpool.Pool {
	t.Helper()
	role := newRole(t, db.Server, part)
	if part != "" {
		db.Exec(t, "SELECT {schema}.outbox_grant($1, $2)", part, role)
	}
	return openPool(t, withParameter(t, asRole(t, db.URL, role), "search_path", ""))
}

const (
	relayOne = "00000000-0000-4000-8000-000000000001"
	tokenOne = "00000000-0000-4000-8000-00000000000a"
	tokenTwo = "00000000-0000-4000-8000-00000000000b"
)

// leases are lanes with one token, as the arguments of a settle.
func leases(token string, lanes ...int16) (numbers []int16, tokens []string) {
	for range lanes {
		tokens = append(tokens, token)
	}
	return lanes, tokens
}

// settled is the answer of a settle: whether all lanes were held, and how many rows went where.
type settled struct {
	held                     bool
	published, dead, letters int
}

func settle(t testing.TB, db *pgtest.DB, relay *pgxpool.Pool, lanes []int16, tokens, published, dead []string) (answer settled) {
	t.Helper()
	err := relay.QueryRow(t.Context(), db.SQL(settleSQL), lanes, tokens, published, dead).
		Scan(&answer.held, &answer.published, &answer.dead, &answer.letters)
	if err != nil {
		t.Errorf("settle: %v", err)
	}
	return answer
}

func laneOf(t testing.TB, db *pgtest.DB, aggregate string) int16 {
	t.Helper()
	return int16(db.Count(t, "SELECT {schema}.outbox_lane('default', 'order', $1)", aggregate))
}

// TestTheRelaysRoleCarriesItsStatements: take over, read, settle with dead letters, renew, release, with
// nothing but the relay's grants and an empty search_path; a stale token changes nothing.
func TestTheRelaysRoleCarriesItsStatements(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		relay := asPart(t, db, "relay")
		events := []string{insertEvent(t, db, "1", 0), insertEvent(t, db, "1", 0), insertEvent(t, db, "1", 0)}
		lane := laneOf(t, db, "1")
		if n := countRows(t, relay, db.SQL(takeOverSQL), 64, relayOne, tokenOne, 30000); n != 64 {
			t.Fatalf("took over %d lanes, want 64", n)
		}
		read := column(t, relay, db.SQL("SELECT id::text FROM ("+readSQL+") r WHERE id IS NOT NULL"),
			[]int16{lane}, []int64{0}, []int64{0}, []int32{10}, []int64{}, []int64{})
		if !slices.Equal(read, events) {
			t.Fatalf("read %v, want %v in that order", read, events)
		}
		stale, tokens := leases(tokenTwo, lane)
		if got := settle(t, db, relay, stale, tokens, events, nil); got != (settled{}) {
			t.Errorf("a stale settle answered %+v", got)
		}
		lanes, tokens := leases(tokenOne, lane)
		if got := settle(t, db, relay, lanes, tokens, events[:2], events[2:]); got != (settled{true, 2, 1, 1}) {
			t.Errorf("the settle answered %+v", got)
		}
		if got := settle(t, db, relay, lanes, tokens, events[:2], events[2:]); got != (settled{held: true}) {
			t.Errorf("repeated, it answered %+v", got)
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq d JOIN {schema}.outbox_events e ON e.id = d.event_id AND e.payload_json::text = d.payload_json::text WHERE e.state = 4"); n != 1 {
			t.Errorf("%d dead letters hold what would have been published", n)
		}
		if n := countRows(t, relay, db.SQL(renewSQL), lanes, tokens, []int64{3}, 30000); n != 1 {
			t.Errorf("renewed %d lanes", n)
		}
		if n := countRows(t, relay, db.SQL(renewSQL), stale, []string{tokenTwo}, []int64{9}, 30000); n != 0 {
			t.Errorf("renewed %d lanes with a stale token", n)
		}
		if answer, err := relay.Exec(t.Context(), db.SQL(releaseSQL), tokenOne); err != nil || answer.RowsAffected() != 64 {
			t.Errorf("released %d lanes, %v", answer.RowsAffected(), err)
		}
		for _, statement := range []string{heldSQL, heldAggregatesSQL, dueSQL, requestsSQL} {
			args := []any{lane}
			if statement == heldSQL {
				args = []any{"default", "order", "1"}
			}
			if _, err := relay.Exec(t.Context(), db.SQL(statement), args...); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
}

// countRows runs a statement and counts what it answers.
func countRows(t testing.TB, pool *pgxpool.Pool, statement string, args ...any) (n int) {
	t.Helper()
	rows, err := pool.Query(t.Context(), statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return n
}

// TestASettleKeepsTheLane: while a settle of a lane runs, a take-over skips the lane and a renewal does
// not wait; a take-over in progress makes the settle of the old holder wait and then change nothing.
func TestASettleKeepsTheLane(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		relay := asPart(t, db, "relay")
		event := insertEvent(t, db, "1", 0)
		lane := laneOf(t, db, "1")
		if n := countRows(t, relay, db.SQL(takeOverSQL), 64, relayOne, tokenOne, 30000); n != 64 {
			t.Fatalf("took over %d lanes", n)
		}
		expire := "UPDATE {schema}.outbox_lanes SET lease_until = clock_timestamp() - interval '1 s'"
		lanes, tokens := leases(tokenOne, lane)

		settling, err := relay.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = settling.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := settling.Exec(t.Context(), db.SQL(settleSQL), lanes, tokens, []string{event}, []string{}); err != nil {
			t.Fatal(err)
		}
		if n := countRows(t, relay, db.SQL(renewSQL), lanes, tokens, []int64{0}, 30000); n != 1 {
			t.Errorf("renewed %d lanes beside the settle", n)
		}
		db.Exec(t, expire)
		if n := countRows(t, relay, db.SQL(takeOverSQL), 64, relayOne, tokenTwo, 30000); n != 63 {
			t.Errorf("took over %d lanes beside the settle, want all but its own", n)
		}
		if err := settling.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}

		taking, err := relay.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = taking.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := taking.Exec(t.Context(), db.SQL(takeOverSQL), 64, relayOne, tokenTwo, 30000); err != nil {
			t.Fatal(err)
		}
		late := make(chan settled, 1)
		go func() { late <- settle(t, db, relay, lanes, tokens, []string{event}, nil) }()
		blockedBy(t, db.Pool, taking)
		if err := taking.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-late; got != (settled{}) {
			t.Errorf("the settle of the old holder answered %+v", got)
		}
	})
}

// TestTheRelaysRoleCanFence: the watermark needs the sequence and pg_locks, and finds a producer's open
// transaction there, by its lock on the sequence.
func TestTheRelaysRoleCanFence(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		relay, producer := asPart(t, db, "relay"), asPart(t, db, "producer")
		fence := func() (last int64) {
			var standby bool
			if err := relay.QueryRow(t.Context(), db.SQL(fenceSequenceSQL)).Scan(&last, &standby); err != nil || standby {
				t.Fatalf("sequence: %v, in recovery %v", err, standby)
			}
			return last
		}
		if last := fence(); last != 0 {
			t.Errorf("an unused sequence is at %d", last)
		}
		writer, err := producer.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = writer.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := writer.Exec(t.Context(), db.SQL("SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')")); err != nil {
			t.Fatal(err)
		}
		var xid string
		if err := writer.QueryRow(t.Context(), "SELECT pg_current_xact_id()::xid::text").Scan(&xid); err != nil {
			t.Fatal(err)
		}
		if last := fence(); last != 1 {
			t.Errorf("after one draw the sequence is at %d", last)
		}
		var vxid, seen, horizon string
		if err := relay.QueryRow(t.Context(), db.SQL(fenceWritersSQL)).Scan(&vxid, &seen, &horizon); err != nil || seen != xid {
			t.Errorf("the open writer is %s, the fence says %q (%v)", xid, seen, err)
		}
		for _, statement := range []string{barrierSQL, "SELECT pg_postmaster_start_time()", "SELECT pg_current_snapshot()"} {
			if _, err := relay.Exec(t.Context(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
		if err := writer.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := countRows(t, relay, db.SQL(fenceWritersSQL)); n != 0 {
			t.Errorf("%d writers after the commit", n)
		}
	})
}
