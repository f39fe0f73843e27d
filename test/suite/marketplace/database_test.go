package marketplace

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/examples/marketplace/migrations"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// nameDatabase returns the URL of a database that does not exist yet, and drops it when the test ends.
func nameDatabase(t *testing.T, server pgtest.Server) string {
	t.Helper()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	name := pgtest.NewName("marketplace")
	address.Path = "/" + name
	t.Cleanup(func() { execute(t, server.URL, `DROP DATABASE IF EXISTS "`+name+`" WITH (FORCE)`) })
	return address.String()
}

// newDatabase makes a database with all of the marketplace's tables.
func newDatabase(t *testing.T, server pgtest.Server) *pgxpool.Pool {
	t.Helper()
	address := nameDatabase(t, server)
	parsed, err := pgxpool.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, server.URL, `CREATE DATABASE "`+parsed.ConnConfig.Database+`"`)
	pool, err := pgxpool.NewWithConfig(t.Context(), parsed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	for range 2 { // the second time there is nothing to do
		if err := migrations.Shop(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if err := migrations.Worker(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// onEach runs a test in a fresh database of every server.
func onEach(t *testing.T, test func(t *testing.T, pool *pgxpool.Pool)) {
	t.Helper()
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			test(t, newDatabase(t, server))
		})
	}
}

func execute(t *testing.T, address, statement string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), address)
	if err != nil {
		t.Fatalf("%v\nIs it running? `make services` starts it.", err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// column reads the one column that a statement selects.
func column[T any](t *testing.T, pool *pgxpool.Pool, statement string, args ...any) []T {
	t.Helper()
	rows, err := pool.Query(t.Context(), statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return values
}

// tables are those of these names that a database has.
func tables(t *testing.T, address string, names ...string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var found string
	err = conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(tablename, ' ' ORDER BY tablename), '') FROM pg_tables `+
		`WHERE schemaname = 'public' AND tablename = ANY($1)`, names).Scan(&found)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
