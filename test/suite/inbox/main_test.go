// Package inbox_test holds the inbox in PostgreSQL to what it promises: concurrent deliveries, consumers that are
// killed, retention, rights, plans and migrations. test/suite/drivers runs it over every driver.
package inbox_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestMain is also the entry of the consumer that TestFaultI2KilledAnywhere kills.
func TestMain(m *testing.M) {
	if url := os.Getenv(victimURL); url != "" {
		os.Exit(victim(url, os.Getenv(victimSchema), os.Getenv(victimEvent), os.Getenv(victimPoint)))
	}
	os.Exit(goroutines.Run(m))
}

const consumer = "mailer"

// onEach runs a test against every server, each in a fresh schema with an inbox and a table of effects, on which
// nothing keeps an effect from happening twice.
func onEach(t *testing.T, test func(t *testing.T, db *pgtest.DB)) {
	t.Helper()
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			db := emptySchema(t, server, "inbox")
			migrate(t, db, schema.Inbox.Up, schema.Options{})
			db.Exec(t, "CREATE TABLE {schema}.effects (n bigint GENERATED ALWAYS AS IDENTITY, event_id uuid NOT NULL, "+
				"aggregate text NOT NULL DEFAULT '', seq bigint NOT NULL DEFAULT 0)")
			test(t, db)
		})
	}
}

// emptySchema is a schema that is not there yet, and not after the test.
func emptySchema(t testing.TB, server pgtest.Server, prefix string) *pgtest.DB {
	t.Helper()
	db := &pgtest.DB{Server: server, Schema: pgtest.NewName(prefix)}
	db.Pool = db.Open(t, server.URL+"&pool_max_conns=16", "search_path", "") // a handler may hold two of them
	t.Cleanup(func() {
		if _, err := db.Pool.Exec(context.Background(), "DROP SCHEMA IF EXISTS "+quote(db.Schema)+" CASCADE"); err != nil {
			t.Errorf("drop the test's schema: %v", err)
		}
	})
	return db
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// first marks the event in the transaction and wants this answer.
func first(t testing.TB, db *pgtest.DB, tx pgx.Tx, event outbox.ID, want bool) {
	t.Helper()
	if got, err := inbox.First(t.Context(), outbox.InSchema(tx, db.Schema), consumer, event); err != nil || got != want {
		t.Fatalf("first: got %t, %v, want %t", got, err, want)
	}
}

func commit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
