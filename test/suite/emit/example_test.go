package emit_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/outboxtest"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// What follows runs what the documentation shows.

type orderCreatedV1 struct {
	OrderID    string `json:"orderId"`
	TotalCents int64  `json:"totalCents"`
}

var orderCreated = outbox.Define[orderCreatedV1](outbox.Contract{
	Type: "order_created", Version: 1, Aggregate: "vendor_order", Topic: "domain",
})

// onFreshSchema installs an outbox into a schema of its own and drops it afterwards.
func onFreshSchema(run func(ctx context.Context, pool *pgxpool.Pool, schemaName string) error) {
	ctx := context.Background()
	name, url := pgtest.NewName("example"), services.Postgres18()
	db, err := sql.Open("pgx", url)
	if err == nil {
		defer func() { _ = db.Close() }()
		defer func() { _, _ = db.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+name+" CASCADE") }()
		err = schema.Outbox.Up(ctx, db, schema.Options{Schema: name})
	}
	if err == nil {
		var pool *pgxpool.Pool
		if pool, err = pgxpool.New(ctx, url); err == nil {
			defer pool.Close()
			err = run(ctx, pool, name)
		}
	}
	if err != nil {
		fmt.Println("failed:", err)
	}
}

// A business change and its event, in one transaction.
func Example_emit() {
	onFreshSchema(func(ctx context.Context, pool *pgxpool.Pool, schemaName string) error {
		err := outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
			// ... the business change, with the same tx ...
			receipts, err := outbox.Emit(ctx, outbox.InSchema(tx, schemaName),
				orderCreated.New("o-1", orderCreatedV1{OrderID: "o-1", TotalCents: 1250}),
				orderCreated.New("o-2", orderCreatedV1{OrderID: "o-2", TotalCents: 99}))
			if err != nil {
				return err
			}
			fmt.Println("emitted", len(receipts), "created", receipts[0].Created, receipts[1].Created)
			return nil
		})
		if err != nil {
			return err
		}
		rows, err := pool.Query(ctx, "SELECT aggregate_id, status FROM "+schemaName+".outbox_status ORDER BY seq")
		if err != nil {
			return err
		}
		var id, status string
		_, err = pgx.ForEachRow(rows, []any{&id, &status}, func() error {
			fmt.Println(id, status)
			return nil
		})
		return err
	})
	// Output:
	// emitted 2 created true true
	// o-1 pending
	// o-2 pending
}

// A dedupe key makes a retried request one event; other content under the same key is refused, and the
// transaction goes on.
func Example_dedupe() {
	onFreshSchema(func(ctx context.Context, pool *pgxpool.Pool, schemaName string) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		box := outbox.InSchema(tx, schemaName)
		for _, cents := range []int64{1250, 1250, 9999} {
			event := orderCreated.New("o-1", orderCreatedV1{OrderID: "o-1", TotalCents: cents})
			event.DedupeKey = "create/o-1"
			receipts, err := outbox.Emit(ctx, box, event)
			switch {
			case errors.Is(err, outbox.ErrDedupeMismatch):
				fmt.Println("refused: other content")
			case err != nil:
				return err
			default:
				fmt.Println("created:", receipts[0].Created)
			}
		}
		return tx.Commit(ctx)
	})
	// Output:
	// created: true
	// created: false
	// refused: other content
}

// tb stands for the *testing.T that a real test has.
type tb struct{}

func (tb) Helper()                           {}
func (tb) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// In an application's test: call the code under test, assert, roll back.
func Example_assertEmitted() {
	onFreshSchema(func(ctx context.Context, pool *pgxpool.Pool, schemaName string) error {
		var t tb
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		box := outbox.InSchema(tx, schemaName)
		if _, err := outbox.Emit(ctx, box,
			orderCreated.New("o-1", orderCreatedV1{OrderID: "o-1", TotalCents: 1250})); err != nil {
			return err
		}
		emitted := outboxtest.RequireEmitted(ctx, t, box, orderCreated, "o-1")
		fmt.Println(emitted.Data.TotalCents)
		outboxtest.RequireNotEmitted(ctx, t, box, orderCreated, "o-2")
		outboxtest.RequireEmitted(ctx, t, box, orderCreated, "o-3")
		return nil
	})
	// Output:
	// 1250
	// want one order_created of vendor_order "o-3", got 0; the transaction sees: order_created of vendor_order o-1
}
