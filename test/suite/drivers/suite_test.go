package drivers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// An endpoint is a way from the test to a server.
type endpoint struct {
	name   string
	url    string
	pooled bool // through PgBouncer in transaction mode
}

// endpointsOf returns the ways to one of pgtest.Servers.
func endpointsOf(server int) []endpoint {
	pooled := []string{services.PgBouncer18(), services.PgBouncer15()}
	return []endpoint{
		{name: "direct", url: pgtest.Servers()[server].URL},
		{name: "pgbouncer", url: pooled[server], pooled: true},
	}
}

// A cell is one behaviour of one driver at one endpoint.
type cell struct {
	db       *pgtest.DB
	open     begin
	reopen   func(t *testing.T) begin // a handle that has not yet sent anything
	contract *outbox.ContractFor[json.RawMessage]
}

// TestDrivers runs every behaviour with every driver on every server, directly and through PgBouncer.
// What one driver does on one server shares a schema, and is told apart by the event type.
func TestDrivers(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers() {
		for i, server := range pgtest.Servers() {
			t.Run(driver.name+"/"+server.Name, func(t *testing.T) {
				t.Parallel()
				db := pgtest.New(t, server)
				for _, endpoint := range endpointsOf(i) {
					t.Run(endpoint.name, func(t *testing.T) { testEndpoint(t, driver, db, endpoint) })
				}
			})
		}
	}
}

func testEndpoint(t *testing.T, driver driver, db *pgtest.DB, endpoint endpoint) {
	if endpoint.pooled && driver.named && !pgBouncerKeepsNames(t) {
		t.Skip("this PgBouncer hands named prepared statements to the wrong server connection; " +
			"TestNamedStatementsBehindPgBouncer shows how that ends")
	}
	reopen := func(t *testing.T) begin { t.Helper(); return driver.open(t, endpoint.url, db.Schema) }
	open := reopen(t)
	for _, behaviour := range behaviours {
		t.Run(behaviour.name, func(t *testing.T) {
			behaviour.test(t, cell{
				db: db, open: open, reopen: reopen, contract: contractOf(endpoint.name + "." + behaviour.name),
			})
		})
	}
}

func contractOf(eventType string) *outbox.ContractFor[json.RawMessage] {
	return outbox.Define[json.RawMessage](outbox.Contract{Type: eventType, Aggregate: "order", Topic: "orders"})
}

// begin starts a transaction that finds nothing by its search_path: a statement that does not name its
// schema fails.
func (c cell) begin(t *testing.T) tx {
	t.Helper()
	began, err := c.open(t.Context())
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	t.Cleanup(func() { _ = began.rollback(context.Background()) })
	c.exec(t, began, "SET LOCAL search_path = ''")
	return began
}

func (c cell) exec(t *testing.T, in tx, statement string) {
	t.Helper()
	if err := in.exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// emit requires that the events are accepted.
func (c cell) emit(t *testing.T, in tx, events ...outbox.Event) []outbox.Receipt {
	t.Helper()
	receipts, err := in.emit(t.Context(), events...)
	if err != nil {
		t.Fatalf("emit: %v", err)
	}
	if len(receipts) != len(events) {
		t.Fatalf("%d receipts for %d events", len(receipts), len(events))
	}
	return receipts
}

func (c cell) commit(t *testing.T, in tx) {
	t.Helper()
	if err := in.commit(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// event makes one of the cell's type.
func (c cell) event(aggregateID, data string) outbox.Event {
	return c.contract.New(aggregateID, json.RawMessage(data))
}

// wantEvents requires that so many events of the cell's type are stored.
func (c cell) wantEvents(t *testing.T, want int) {
	t.Helper()
	if got := c.db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE event_type = $1",
		c.contract.Contract().Type); got != want {
		t.Errorf("%d events are stored, want %d", got, want)
	}
}

// wantKeys requires that so many dedupe keys of the cell's type are stored.
func (c cell) wantKeys(t *testing.T, want int) {
	t.Helper()
	if got := c.db.Count(t, "SELECT count(*) FROM {schema}.outbox_dedupe WHERE event_type = $1",
		c.contract.Contract().Type); got != want {
		t.Errorf("%d dedupe keys are stored, want %d", got, want)
	}
}
