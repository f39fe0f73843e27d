package relaytest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrates

	"github.com/posthaste-dev/posthaste/schema"
)

// Database makes a schema with the newest outbox in this database, and drops it when the test ends. The
// pool's search_path is empty: a statement that does not name its schema fails. The role of the URL must be
// allowed to create schemas.
func Database(t testing.TB, url string) (pool *pgxpool.Pool, name string) {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatalf("relaytest: %v", err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = ""
	if pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatalf("relaytest: %v", err)
	}
	t.Cleanup(pool.Close)
	std, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatalf("relaytest: %v", err)
	}
	t.Cleanup(func() { _ = std.Close() })
	name = "relaytest_" + strings.ToLower(rand.Text()[:16])
	t.Cleanup(func() {
		if _, err := std.ExecContext(context.Background(),
			"DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
			t.Errorf("relaytest: drop the test's schema: %v", err)
		}
	})
	if err := schema.Outbox.Up(t.Context(), std, schema.Options{Schema: name}); err != nil {
		t.Fatalf("relaytest: %v", err)
	}
	return pool, name
}
