package drivers_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// inboxBehaviours are what every driver must do alike with an inbox. The cell's event type is the consumer's name.
var inboxBehaviours = []struct {
	name string
	test func(t *testing.T, c cell)
}{
	{"first", testFirst},
	{"undone", testFirstUndone},
	{"newer", testNewer},
	{"refused", testInboxRejected},
	{"broken", testInboxBroken},
	{"retryable", testInboxRetryable},
}

// TestInboxDrivers runs every behaviour of the inbox with every driver that emits, on every server, directly and
// through PgBouncer. The inbox shares its schema with an outbox, and what all drivers do on one server shares it: the
// drivers come one after the other, or SERIALIZABLE would find conflicts among them.
func TestInboxDrivers(t *testing.T) {
	t.Parallel()
	for i, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, server)
			if err := schema.Inbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", server.URL),
				schema.Options{Schema: db.Schema}); err != nil {
				t.Fatal(err)
			}
			for _, driver := range drivers() {
				for _, endpoint := range endpointsOf(i) {
					t.Run(driver.name+"/"+endpoint.name, func(t *testing.T) { testInboxEndpoint(t, driver, db, endpoint) })
				}
			}
		})
	}
}

func testInboxEndpoint(t *testing.T, driver driver, db *pgtest.DB, endpoint endpoint) {
	if endpoint.pooled && driver.named && !pgBouncerKeepsNames(t) {
		t.Skip("this PgBouncer hands named prepared statements to the wrong server connection; " +
			"TestNamedStatementsBehindPgBouncer shows how that ends")
	}
	open := driver.open(t, endpoint.url, db.Schema)
	for _, behaviour := range inboxBehaviours {
		t.Run(behaviour.name, func(t *testing.T) {
			consumer := strings.ToLower(strings.NewReplacer("/", ".", "+",
				"_").Replace(driver.name + "." + endpoint.name + "." + behaviour.name))
			behaviour.test(t, cell{db: db, open: open, contract: contractOf(consumer)})
		})
	}
}

func (c cell) consumer() string { return c.contract.Contract().Type }

func (c cell) first(t *testing.T, in tx, event outbox.ID, want bool) {
	t.Helper()
	if got, err := in.first(t.Context(), c.consumer(), event); err != nil || got != want {
		t.Fatalf("first: got %t, %v, want %t", got, err, want)
	}
}

func (c cell) newer(t *testing.T, in tx, aggregateID string, seq int64, want bool) {
	t.Helper()
	if got, err := in.newer(t.Context(), c.consumer(), outbox.Aggregate{Type: "order", ID: aggregateID},
		seq); err != nil || got != want {
		t.Fatalf("newer, %q %d: got %t, %v, want %t", aggregateID, seq, got, err, want)
	}
}

// wantHandled requires that so many events are marked as handled by the cell's consumer.
func (c cell) wantHandled(t *testing.T, want int) {
	t.Helper()
	if got := c.db.Count(t, "SELECT count(*) FROM {schema}.inbox_handled WHERE consumer = $1", c.consumer()); got != want {
		t.Errorf("%d events are handled, want %d", got, want)
	}
}

func testFirst(t *testing.T, c cell) {
	event := outbox.NewID()
	in := c.begin(t)
	c.first(t, in, event, true)
	c.first(t, in, event, false) // twice in one transaction, as in a batch
	c.wantHandled(t, 0)          // not before the commit
	c.commit(t, in)
	c.wantHandled(t, 1)

	in = c.begin(t)
	c.first(t, in, event, false)
	c.first(t, in, outbox.NewID(), true)
	if other, err := in.first(t.Context(), "other-"+c.consumer()[:20], event); err != nil || !other {
		t.Errorf("another consumer: %t, %v", other, err)
	}
	c.commit(t, in)
	c.wantHandled(t, 2)
}

// testFirstUndone: the mark goes with the transaction, and with a savepoint.
func testFirstUndone(t *testing.T, c cell) {
	event, inside := outbox.NewID(), outbox.NewID()
	in := c.begin(t)
	c.first(t, in, event, true)
	if err := in.rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.wantHandled(t, 0)

	in = c.begin(t)
	c.first(t, in, event, true)
	c.exec(t, in, "SAVEPOINT here")
	c.first(t, in, inside, true)
	c.newer(t, in, "1", 7, true)
	c.exec(t, in, "ROLLBACK TO SAVEPOINT here")
	c.newer(t, in, "1", 6, true)
	c.commit(t, in)
	c.wantHandled(t, 1)
	in = c.begin(t)
	c.first(t, in, inside, true)
}

func testNewer(t *testing.T, c cell) {
	in := c.begin(t)
	c.newer(t, in, "1", 5, true)
	c.newer(t, in, "1", 5, false)
	c.commit(t, in)
	in = c.begin(t)
	c.newer(t, in, "1", 4, false)
	c.newer(t, in, "2", 4, true)
	c.newer(t, in, "1", 1<<62, true)
	otherNamespace := outbox.Aggregate{Namespace: "billing", Type: "order", ID: "1"}
	if newer, err := in.newer(t.Context(), c.consumer(), otherNamespace, 1); err != nil || !newer {
		t.Errorf("the first event in another namespace: got %t, %v", newer, err)
	}
	for _, text := range awkward {
		c.newer(t, in, text, 2, true)
		c.newer(t, in, text, 1, false)
	}
	c.commit(t, in)
	if got := c.db.Count(t, "SELECT count(*) FROM {schema}.inbox_newest WHERE consumer = $1",
		c.consumer()); got != 3+len(awkward) {
		t.Errorf("%d aggregates are remembered, want %d", got, 3+len(awkward))
	}
}

func testInboxRejected(t *testing.T, c cell) {
	in := c.begin(t)
	for _, consumer := range []string{
		"", "Upper", "white space", "sch\u00f6n", "a/b", "nul\x00", "line\n", strings.Repeat("x", 65),
	} {
		if first, err := in.first(t.Context(), consumer, outbox.NewID()); first || !errors.Is(err, inbox.ErrRefused) {
			t.Errorf("first of consumer %q: got %t, %v, want a refusal", consumer, first, err)
		}
	}
	if first, err := in.first(t.Context(), c.consumer(), outbox.ID{}); first || !errors.Is(err, inbox.ErrRefused) {
		t.Errorf("no event: got %t, %v, want a refusal", first, err)
	}
	for _, given := range []struct {
		consumer  string
		aggregate outbox.Aggregate
		seq       int64
	}{
		{"Upper", outbox.Aggregate{Type: "order", ID: "1"}, 1},
		{c.consumer(), outbox.Aggregate{ID: "1"}, 1},
		{c.consumer(), outbox.Aggregate{Type: "order"}, 1},
		{c.consumer(), outbox.Aggregate{Namespace: strings.Repeat("x", 129), Type: "order", ID: "1"}, 1},
		{c.consumer(), outbox.Aggregate{Namespace: "\xff", Type: "order", ID: "1"}, 1},
		{c.consumer(), outbox.Aggregate{Type: strings.Repeat("x", 129), ID: "1"}, 1},
		{c.consumer(), outbox.Aggregate{Type: "order", ID: strings.Repeat("x", 513)}, 1},
		{c.consumer(), outbox.Aggregate{Type: "order", ID: "\xff"}, 1},
		{c.consumer(), outbox.Aggregate{Type: "order", ID: "a\x00b"}, 1},
		{c.consumer(), outbox.Aggregate{Type: "order", ID: "1"}, 0},
		{c.consumer(), outbox.Aggregate{Type: "order", ID: "1"}, -1},
	} {
		if newer, err := in.newer(t.Context(), given.consumer, given.aggregate, given.seq); newer ||
			!errors.Is(err, inbox.ErrRefused) {
			t.Errorf("%.40v: got %t, %v, want a refusal", given, newer, err)
		}
	}
	c.first(t, in, outbox.NewID(), true) // the transaction is still usable
	c.commit(t, in)
	c.wantHandled(t, 1)
}

// testInboxBroken: an error of the database is an error and never an answer.
func testInboxBroken(t *testing.T, c cell) {
	in := c.begin(t)
	_ = in.exec(t.Context(), "SELECT 1/0")
	first, err := in.first(t.Context(), c.consumer(), outbox.NewID())
	var state interface{ SQLState() string }
	if first || !errors.As(err, &state) || state.SQLState() != "25P02" || errors.Is(err, inbox.ErrRefused) {
		t.Errorf("in a transaction that PostgreSQL has given up: got %t, %v", first, err)
	}
	_ = in.rollback(t.Context())
	in = c.begin(t)
	c.first(t, in, outbox.NewID(), true)
	c.commit(t, in)
}

// testInboxRetryable: above READ COMMITTED, a mark that the snapshot does not show is a serialization failure.
func testInboxRetryable(t *testing.T, c cell) {
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		event := outbox.NewID()
		in := c.begin(t)
		c.exec(t, in, "SET TRANSACTION ISOLATION LEVEL "+level)
		c.exec(t, in, "SELECT 1") // takes the snapshot

		other := c.begin(t)
		c.first(t, other, event, true)
		c.commit(t, other)

		first, err := in.first(t.Context(), c.consumer(), event)
		if first || !outbox.Retryable(err) || !strings.Contains(err.Error(), "run this one again") {
			t.Errorf("%s: got %t, %v, want a retryable error", level, first, err)
		}
		_ = in.rollback(t.Context())
		in = c.begin(t)
		c.exec(t, in, "SET TRANSACTION ISOLATION LEVEL "+level)
		c.first(t, in, event, false)
		c.commit(t, in)
	}
}

// TestInboxGORMOutsideTransaction: as with EmitGORM, nothing is sent.
func TestInboxGORMOutsideTransaction(t *testing.T) {
	t.Parallel()
	wire := newWire(t, services.Postgres18())
	db := newGORM(t, wire.url, gormMode{})
	before := wire.count()
	for _, of := range []*gorm.DB{db, db.Session(&gorm.Session{PrepareStmt: true})} {
		for name, pool := range map[string]outbox.GORMPool{
			"ConnPool": of.Statement.ConnPool, "in a schema": outbox.InSchemaGORM(of.Statement.ConnPool, "billing"),
			"nothing": nil, "nothing else": outbox.InSchemaGORM(nil, "billing"),
		} {
			_, first := inbox.FirstGORM(t.Context(), pool, "mailer", outbox.NewID())
			_, newer := inbox.NewerGORM(t.Context(), pool, "mailer", outbox.Aggregate{Type: "order", ID: "1"}, 1)
			if !errors.Is(first, inbox.ErrNoTransaction) || !errors.Is(newer, inbox.ErrRefused) {
				t.Errorf("%s: got %v and %v, want ErrNoTransaction", name, first, newer)
			}
		}
	}
	if sent := wire.count().minus(before); sent.messages != 0 {
		t.Errorf("%d messages were sent, want none", sent.messages)
	}
}
