package drivers_test

import (
	"context"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// A gormMode is how GORM talks to the server.
type gormMode struct {
	driver     string // a database/sql driver instead of the one that GORM opens itself
	parameters string
	simple     bool // PreferSimpleProtocol
	prepare    bool // PrepareStmt
}

type gormTx struct {
	*gorm.DB
	schema string
}

func openGORM(mode gormMode) func(testing.TB, string, string) begin {
	return func(t testing.TB, url, schema string) begin {
		t.Helper()
		db := newGORM(t, url, mode)
		return func(ctx context.Context) (tx, error) {
			began := db.WithContext(ctx).Begin()
			return gormTx{DB: began, schema: schema}, began.Error
		}
	}
}

func newGORM(t testing.TB, url string, mode gormMode) *gorm.DB {
	t.Helper()
	url = withParameters(t, url, mode.parameters)
	config := postgres.Config{DSN: url, PreferSimpleProtocol: mode.simple}
	if mode.driver != "" {
		config = postgres.Config{Conn: pgtest.OpenSQL(t, mode.driver, url)}
	}
	db, err := gorm.Open(postgres.New(config), &gorm.Config{PrepareStmt: mode.prepare, Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	std, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = std.Close() })
	return db
}

func (g gormTx) emit(ctx context.Context, events ...outbox.Event) ([]outbox.Receipt, error) {
	return outbox.EmitGORM(ctx, outbox.InSchemaGORM(g.Statement.ConnPool, g.schema), events...)
}

func (g gormTx) first(ctx context.Context, consumer string, event outbox.ID) (bool, error) {
	return inbox.FirstGORM(ctx, outbox.InSchemaGORM(g.Statement.ConnPool, g.schema), consumer, event)
}

func (g gormTx) newer(ctx context.Context, consumer string, aggregate outbox.Aggregate, seq int64) (bool, error) {
	return inbox.NewerGORM(ctx, outbox.InSchemaGORM(g.Statement.ConnPool, g.schema), consumer, aggregate, seq)
}

func (g gormTx) exec(ctx context.Context, statement string) error {
	return g.WithContext(ctx).Exec(statement).Error
}

func (g gormTx) commit(context.Context) error   { return g.Commit().Error }
func (g gormTx) rollback(context.Context) error { return g.Rollback().Error }
