package schema

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// asPart connects a role that was granted one part, with an empty search_path.
func asPart(t testing.TB, db *pgtest.DB, part string) *pgxpool.Pool {
	t.Helper()
	role := pgtest.NewRole(t, db.Server, part)
	if part != "" {
		db.Exec(t, "SELECT {schema}.outbox_grant($1, $2)", part, role)
	}
	return openPool(t, withParameter(t, pgtest.As(t, db.URL, role), "search_path", ""))
}

const (
	relayOne = "00000000-0000-4000-8000-000000000001"
	tokenOne = "00000000-0000-4000-8000-00000000000a"
)

func laneOf(t testing.TB, db *pgtest.DB, aggregate string) int16 {
	t.Helper()
	return int16(db.Count(t, "SELECT {schema}.outbox_lane('default', 'order', $1)", aggregate))
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

// TestTheBellNamesItsOutbox: outboxes of one database share the channel, so the message tells them apart.
func TestTheBellNamesItsOutbox(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		listener := connect(t, db.URL)
		if _, err := listener.Exec(t.Context(), "LISTEN posthaste"); err != nil {
			t.Fatal(err)
		}
		producer := asPart(t, db, "producer")
		tx, err := producer.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := tx.Exec(t.Context(), db.SQL("SELECT {schema}.outbox_wake()")); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Pool.Exec(t.Context(), "SELECT pg_notify('posthaste', $1)", db.Schema+" end"); err != nil {
			t.Fatal(err)
		}
		// Other tests ring as well.
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		rung := 0
		for {
			notification, err := listener.WaitForNotification(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if notification.Payload == db.Schema+" end" {
				break
			}
			if notification.Payload == db.Schema {
				rung++
			}
		}
		if rung != 1 {
			t.Errorf("three calls in one transaction rang %d times", rung)
		}
	})
}
