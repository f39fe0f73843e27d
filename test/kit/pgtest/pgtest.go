// Package pgtest gives every test a schema of its own on real PostgreSQL servers.
package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrates

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// A Server is a PostgreSQL that the tests run against.
type Server struct {
	Name string // postgres18, or postgres15
	URL  string // as superuser
}

// Servers lists the servers that every database test runs against.
func Servers() []Server {
	return []Server{
		{Name: "postgres18", URL: services.Postgres18()},
		{Name: "postgres15", URL: services.Postgres15()},
	}
}

// A DB is a schema with the outbox in it, alone for one test.
type DB struct {
	Server
	Schema string
	// Pool has an empty search_path: a statement that does not name its schema fails.
	Pool *pgxpool.Pool
}

// OnEach runs a test against every server, each in a fresh schema.
func OnEach(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	for _, server := range Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			test(t, New(t, server))
		})
	}
}

var schemas atomic.Int64

// NewName returns a name for a schema or role that no other test of any process uses.
func NewName(prefix string) string {
	return fmt.Sprintf("%s_%d_%d_%d", prefix, os.Getpid(), time.Now().UnixNano()%1e9, schemas.Add(1))
}

// drop removes a schema. A backend whose client is gone may still be at work in it: of two that wait for each other the
// server ends one, and then the other one gets on.
func drop(db *sql.DB, name string) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), eventually.Patience,
		errors.New("somebody is still at work in it"))
	defer cancel()
	for {
		_, err := db.ExecContext(ctx, `DROP SCHEMA IF EXISTS "`+name+`" CASCADE`)
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		if deadlock := (*pgconn.PgError)(nil); !errors.As(err, &deadlock) || deadlock.Code != "40P01" {
			return err
		}
	}
}

// New makes a schema with the newest outbox on this server and drops it when the test ends.
func New(t testing.TB, server Server) *DB {
	t.Helper()
	db := &DB{Server: server, Schema: NewName("t")}
	db.Pool = db.Open(t, server.URL, "search_path", "")
	std := OpenSQL(t, "pgx", unsynced(t, server.URL))
	t.Cleanup(func() {
		if err := drop(std, db.Schema); err != nil {
			t.Errorf("drop the test's schema: %v", err)
		}
	})
	if err := schema.Outbox.Up(t.Context(), std, schema.Options{Schema: db.Schema}); err != nil {
		t.Fatalf("migrate on %s: %v\nIs it running? `make services` starts it.", server.Name, err)
	}
	db.Exec(t, "COMMENT ON SCHEMA {schema} IS 'of a test'") // this commit waits, and all before it are on the disk with it
	return db
}

// unsynced is an address whose commits do not wait for the disk: a migration of all has a dozen of them.
func unsynced(t testing.TB, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("synchronous_commit", "off")
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// Open connects a pool with these runtime parameters, given as pairs.
func (db *DB) Open(t testing.TB, url string, parameters ...string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(parameters); i += 2 {
		config.ConnConfig.RuntimeParams[parameters[i]] = parameters[i+1]
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// OpenSQL opens a database/sql handle that is closed when the test ends.
func OpenSQL(t testing.TB, driver, url string) *sql.DB {
	t.Helper()
	std, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = std.Close() })
	return std
}

// Begin starts a transaction that is rolled back when the test ends, unless it was ended before.
func (db *DB) Begin(t testing.TB) pgx.Tx {
	t.Helper()
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// SQL names the test's schema in a statement: {schema}.
func (db *DB) SQL(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", `"`+db.Schema+`"`)
}

// Exec runs a statement outside any transaction and fails the test when it fails.
func (db *DB) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(t.Context(), db.SQL(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Count runs a query for one number.
func (db *DB) Count(t testing.TB, query string, args ...any) int {
	t.Helper()
	var n int
	if err := db.Pool.QueryRow(t.Context(), db.SQL(query), args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
