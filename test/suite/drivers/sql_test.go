package drivers_test

import (
	"context"
	"database/sql"
	"net/url"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// execTx is what *sql.Tx and *sqlx.Tx have beyond what an emit needs.
type execTx interface {
	outbox.SQLTx
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

type sqlTx struct {
	execTx
	schema string
}

func openSQL(name, parameters string) func(testing.TB, string, string) begin {
	return func(t testing.TB, url, schema string) begin {
		t.Helper()
		db := pgtest.OpenSQL(t, name, withParameters(t, url, parameters))
		return func(ctx context.Context) (tx, error) {
			began, err := db.BeginTx(ctx, nil)
			return sqlTx{execTx: began, schema: schema}, err
		}
	}
}

func openSqlx(name, parameters string) func(testing.TB, string, string) begin {
	return func(t testing.TB, url, schema string) begin {
		t.Helper()
		db := sqlx.NewDb(pgtest.OpenSQL(t, name, withParameters(t, url, parameters)), name)
		return func(ctx context.Context) (tx, error) {
			began, err := db.BeginTxx(ctx, nil)
			return sqlTx{execTx: began, schema: schema}, err
		}
	}
}

// openBun hands out the *sql.Tx inside bun's transaction; TestBunDropsArguments says why.
func openBun(name, parameters string) func(testing.TB, string, string) begin {
	return func(t testing.TB, url, schema string) begin {
		t.Helper()
		db := newBun(t, name, withParameters(t, url, parameters))
		return func(ctx context.Context) (tx, error) {
			began, err := db.BeginTx(ctx, nil)
			return sqlTx{execTx: began.Tx, schema: schema}, err
		}
	}
}

func newBun(t testing.TB, name, url string) *bun.DB {
	t.Helper()
	return bun.NewDB(pgtest.OpenSQL(t, name, url), pgdialect.New())
}

func (s sqlTx) emit(ctx context.Context, events ...outbox.Event) ([]outbox.Receipt, error) {
	return outbox.EmitSQL(ctx, outbox.InSchemaSQL(s.execTx, s.schema), events...)
}

func (s sqlTx) first(ctx context.Context, consumer string, event outbox.ID) (bool, error) {
	return inbox.FirstSQL(ctx, outbox.InSchemaSQL(s.execTx, s.schema), consumer, event)
}

func (s sqlTx) newer(ctx context.Context, consumer string, aggregate outbox.Aggregate, seq int64) (bool, error) {
	return inbox.NewerSQL(ctx, outbox.InSchemaSQL(s.execTx, s.schema), consumer, aggregate, seq)
}

func (s sqlTx) exec(ctx context.Context, statement string) error {
	_, err := s.ExecContext(ctx, statement)
	return err
}

func (s sqlTx) commit(context.Context) error   { return s.Commit() }
func (s sqlTx) rollback(context.Context) error { return s.Rollback() }

// withParameters adds parameters to a connection string.
func withParameters(t testing.TB, dsn, parameters string) string {
	t.Helper()
	parsed, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if parameters != "" {
		parsed.RawQuery += "&" + parameters
	}
	return parsed.String()
}
