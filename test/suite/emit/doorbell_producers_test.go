package emit_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

type order struct {
	Total int `json:"total"`
}

var sold = outbox.Define[order](outbox.Contract{Type: "order_created", Aggregate: "order", Topic: "orders"})

// orders makes n events; with a key each where keyed is set.
func orders(n int, keyed bool) []outbox.Event {
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = sold.New(fmt.Sprint(i), order{Total: i})
		if keyed {
			events[i].DedupeKey = pgtest.NewName("key")
		}
	}
	return events
}

// A producer is one way to write events. It begins a transaction, writes, and ends it with a statement.
type producer struct {
	name string
	run  func(ctx context.Context, p env, end string) error
}

// An env is a test's schema, and the same server through database/sql.
type env struct {
	*pgtest.DB
	std *sql.DB
}

func onPgx(name string, write func(ctx context.Context, p env, tx pgx.Tx) error) producer {
	return producer{name, func(ctx context.Context, p env, end string) error {
		tx, err := p.Pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if err := write(ctx, p, tx); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, end)
		return err
	}}
}

func onSQL(name string, write func(ctx context.Context, p env, tx *sql.Tx) error) producer {
	return producer{name, func(ctx context.Context, p env, end string) error {
		tx, err := p.std.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := write(ctx, p, tx); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, end)
		return err
	}}
}

// statement is a producer of plain SQL.
func statement(name, text string) producer {
	return onPgx(name, func(ctx context.Context, p env, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, p.SQL(text))
		return err
	})
}

// producers are all the ways there are.
func producers() []producer {
	var all []producer
	for _, n := range []int{1, 20} {
		for _, keyed := range []bool{false, true} {
			of := fmt.Sprintf("(%d events, keys %v)", n, keyed)
			all = append(all,
				onPgx("Emit"+of, func(ctx context.Context, p env, tx pgx.Tx) error {
					_, err := outbox.Emit(ctx, outbox.InSchema(tx, p.Schema), orders(n, keyed)...)
					return err
				}),
				onSQL("EmitSQL"+of, func(ctx context.Context, p env, tx *sql.Tx) error {
					_, err := outbox.EmitSQL(ctx, outbox.InSchemaSQL(tx, p.Schema), orders(n, keyed)...)
					return err
				}),
				onSQL("EmitGORM"+of, func(ctx context.Context, p env, tx *sql.Tx) error {
					_, err := outbox.EmitGORM(ctx, outbox.InSchemaGORM(tx, p.Schema), orders(n, keyed)...)
					return err
				}),
			)
		}
	}
	return append(all,
		statement("outbox_emit", "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')"),
		statement("outbox_emit with a key",
			"SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'k')"),
	)
}

func onEach(t *testing.T, test func(t *testing.T, p env)) {
	t.Helper()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		test(t, env{DB: db, std: pgtest.OpenSQL(t, "pgx", db.URL)})
	})
}
