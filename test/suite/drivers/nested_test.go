package drivers_test

import (
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// wantAggregates requires events of exactly these aggregates, in this order.
func (c cell) wantAggregates(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, row := range c.read(t) {
		got = append(got, row.aggregateID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("events of aggregates %v are stored, want %v", got, want)
	}
}

// TestNestedTransactionPgx: pgx's nested transactions are savepoints, and an event goes with its own.
func TestNestedTransactionPgx(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		c := cell{db: db, contract: contractOf("nested")}
		outer := db.Begin(t)
		for _, step := range []struct {
			aggregateID string
			keep        bool
		}{{"1", true}, {"undone", false}, {"2", true}} {
			nested, err := outer.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := outbox.Emit(t.Context(), outbox.InSchema(nested, db.Schema),
				c.event(step.aggregateID, `{}`)); err != nil {
				t.Fatal(err)
			}
			end := nested.Rollback
			if step.keep {
				end = nested.Commit
			}
			if err := end(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := outer.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.wantAggregates(t, "1", "2")
	})
}

// TestNestedTransactionBun: the same with bun, whose nested transaction holds the same *sql.Tx.
func TestNestedTransactionBun(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		c := cell{db: db, contract: contractOf("nested")}
		outer, err := newBun(t, "pgx", db.URL).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = outer.Rollback() }()
		for _, step := range []struct {
			aggregateID string
			keep        bool
		}{{"1", true}, {"undone", false}, {"2", true}} {
			nested, err := outer.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := outbox.EmitSQL(t.Context(), outbox.InSchemaSQL(nested.Tx, db.Schema),
				c.event(step.aggregateID, `{}`)); err != nil {
				t.Fatal(err)
			}
			end := nested.Rollback
			if step.keep {
				end = nested.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
		}
		if err := outer.Commit(); err != nil {
			t.Fatal(err)
		}
		c.wantAggregates(t, "1", "2")
	})
}

// TestBunDropsArguments: a bun.Tx fits outbox.SQLTx, but bun writes arguments into the query itself and
// drops them where it finds no '?'. That ends in an error and never in a wrong event; what works is the
// *sql.Tx inside.
func TestBunDropsArguments(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		c := cell{db: db, contract: contractOf("dropped")}
		for _, name := range []string{"pgx", "postgres"} {
			in, err := newBun(t, name, db.URL).BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Rollback() }()
			if receipts, err := outbox.EmitSQL(t.Context(), outbox.InSchemaSQL(in, db.Schema), c.event("1", `{}`)); err == nil {
				t.Errorf("%s: emitted %v, want an error; is the detour over tx.Tx not needed any more?", name, receipts)
			}
			_ = in.Commit()
		}
		c.wantEvents(t, 0)
	})
}
