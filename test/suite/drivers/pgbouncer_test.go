package drivers_test

import (
	"errors"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// pgBouncerKeepsNames tells whether this PgBouncer follows named prepared statements from one server
// connection to another: since 1.21 it can, when max_prepared_statements says so.
func pgBouncerKeepsNames(t *testing.T) bool {
	t.Helper()
	console, err := url.Parse(services.PgBouncer18())
	if err != nil {
		t.Fatal(err)
	}
	console.Path = "/pgbouncer"
	pool := openPool(t, withParameters(t, console.String(), "default_query_exec_mode=simple_protocol"))
	rows, err := pool.Query(t.Context(), "SHOW CONFIG")
	if err != nil {
		t.Fatalf("ask PgBouncer: %v", err)
	}
	settings, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Fatalf("ask PgBouncer: %v", err)
	}
	for _, setting := range settings {
		if setting["key"] == "max_prepared_statements" {
			limit, _ := strconv.Atoi(setting["value"].(string))
			return limit > 0
		}
	}
	return false
}

// TestNamedStatementsBehindPgBouncer shows why drivers that name their prepared statements do not work
// behind a PgBouncer that does not follow them, so that the skips of TestDrivers stand on something. A
// name stays on the server connection; the next client that gets this connection meets it. Those who
// close their statements do so after the commit, when the connection may be another client's already:
// the wire keeps that message back for as long.
func TestNamedStatementsBehindPgBouncer(t *testing.T) {
	t.Parallel()
	if pgBouncerKeepsNames(t) {
		t.Skip("this PgBouncer follows named prepared statements, so TestDrivers runs these drivers")
	}
	for _, driver := range drivers() {
		t.Run(driver.name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, pgtest.Servers()[0])
			// A role of its own has a pool of its own in PgBouncer: one server connection, unless two
			// transactions are open at once.
			address := asNewProducer(t, db, services.PgBouncer18())
			wire := newWire(t, address)
			first := cell{db: db, open: driver.open(t, wire.url, db.Schema), contract: contractOf("first")}
			second := cell{db: db, open: driver.open(t, address, db.Schema), contract: contractOf("second")}

			closing, release := wire.hold('C')
			defer release()
			done := make(chan error, 1)
			go func() { done <- first.emitOnce(t) }()
			select {
			case <-closing: // and committed before
			case err := <-done:
				done <- err
			case <-time.After(eventually.Patience):
				t.Fatal("the first client neither closes its statement nor ends")
			}
			err := second.emitOnce(t)
			release()
			if err := eventually.Receive(t, "the first client has ended", done); err != nil {
				t.Errorf("the first client: %v", err)
			}
			first.wantEvents(t, 1)
			wantPooled(t, driver, second, err)
		})
	}
}

// wantPooled requires that the second client worked, or met the first one's statement.
func wantPooled(t *testing.T, driver driver, c cell, err error) {
	t.Helper()
	if !driver.named {
		if err != nil {
			t.Errorf("the second client: %v", err)
		}
		c.wantEvents(t, 1)
		return
	}
	var state interface{ SQLState() string }
	if !errors.As(err, &state) || state.SQLState() != "42P05" {
		t.Errorf("the second client: got %v, want SQLSTATE 42P05: prepared statement already exists", err)
	}
	c.wantEvents(t, 0)
}

// emitOnce runs a transaction with one event and nothing else.
func (c cell) emitOnce(t *testing.T) error {
	t.Helper()
	in, err := c.open(t.Context())
	if err != nil {
		return err
	}
	if _, err := in.emit(t.Context(), c.event("1", `{}`)); err != nil {
		_ = in.rollback(t.Context())
		return err
	}
	return in.commit(t.Context())
}

// asNewProducer makes a role that may emit and nothing else, and returns the address for it.
func asNewProducer(t *testing.T, db *pgtest.DB, address string) string {
	t.Helper()
	role := pgtest.NewRole(t, db.Server, "producer")
	db.Exec(t, "SELECT {schema}.outbox_grant('producer', $1)", role)
	return pgtest.As(t, address, role)
}
