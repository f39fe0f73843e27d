package drivers_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

type pgxTx struct {
	pgx.Tx
	schema string
}

func openPgx(parameters string) func(testing.TB, string, string) begin {
	return func(t testing.TB, url, schema string) begin {
		t.Helper()
		pool := openPool(t, withParameters(t, url, parameters))
		return func(ctx context.Context) (tx, error) {
			began, err := pool.Begin(ctx)
			return pgxTx{Tx: began, schema: schema}, err
		}
	}
}

func openPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (p pgxTx) emit(ctx context.Context, events ...outbox.Event) ([]outbox.Receipt, error) {
	return outbox.Emit(ctx, outbox.InSchema(p.Tx, p.schema), events...)
}

func (p pgxTx) first(ctx context.Context, consumer string, event outbox.ID) (bool, error) {
	return inbox.First(ctx, outbox.InSchema(p.Tx, p.schema), consumer, event)
}

func (p pgxTx) newer(ctx context.Context, consumer string, aggregate outbox.Aggregate, seq int64) (bool, error) {
	return inbox.Newer(ctx, outbox.InSchema(p.Tx, p.schema), consumer, aggregate, seq)
}

func (p pgxTx) exec(ctx context.Context, statement string) error {
	_, err := p.Exec(ctx, statement)
	return err
}

func (p pgxTx) commit(ctx context.Context) error   { return p.Commit(ctx) }
func (p pgxTx) rollback(ctx context.Context) error { return p.Rollback(ctx) }
