package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestInTxAfterFailedEmit: an emit that the driver gives up before the server hears of it leaves a
// transaction that would commit. If its error is dropped, InTx must not commit either: the business
// change would be without its event. Here the emit's own deadline has passed, as a slow fn would have it.
func TestInTxAfterFailedEmit(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		c := cell{db: db, contract: contractOf("late")}
		db.Exec(t, "CREATE TABLE {schema}.business (id text)")
		insert := db.SQL("INSERT INTO {schema}.business VALUES ('1')")
		for name, run := range map[string]func() error{
			"pgx": func() error {
				return outbox.InTx(t.Context(), db.Pool, func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, insert)
					_, _ = outbox.Emit(expired(ctx), outbox.InSchema(tx, db.Schema), c.event("1", `{}`))
					return err
				})
			},
			"sql-pgx": func() error { return inTxSQL(t, c, pgtest.OpenSQL(t, "pgx", db.URL), insert) },
			"sql-pq":  func() error { return inTxSQL(t, c, pgtest.OpenSQL(t, "postgres", db.URL), insert) },
		} {
			if err := run(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v, want the emit's error", name, err)
			}
			if rows := db.Count(t, "SELECT count(*) FROM {schema}.business"); rows != 0 {
				t.Errorf("%s: the business change is committed without its event", name)
			}
		}
		c.wantEvents(t, 0)
	})
}

func inTxSQL(t *testing.T, c cell, db *sql.DB, insert string) error {
	t.Helper()
	return outbox.InTxSQL(t.Context(), db, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert)
		_, _ = outbox.EmitSQL(expired(ctx), outbox.InSchemaSQL(tx, c.db.Schema), c.event("1", `{}`))
		return err
	})
}

// expired is ctx after its deadline.
func expired(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
