package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// TestEmitGORMOutsideTransaction: GORM's types do not say whether a transaction is open, so EmitGORM
// looks, and refuses before anything is sent.
func TestEmitGORMOutsideTransaction(t *testing.T) {
	t.Parallel()
	for _, pool := range []struct {
		name string
		mode gormMode
		of   func(db *gorm.DB) *gorm.DB
	}{
		{"plain", gormMode{}, func(db *gorm.DB) *gorm.DB { return db }},
		{"WithContext", gormMode{}, func(db *gorm.DB) *gorm.DB { return db.WithContext(context.Background()) }},
		{"PrepareStmt", gormMode{prepare: true}, func(db *gorm.DB) *gorm.DB { return db }},
		{"Session with PrepareStmt", gormMode{}, func(db *gorm.DB) *gorm.DB {
			return db.Session(&gorm.Session{PrepareStmt: true})
		}},
		{"pq", gormMode{driver: "postgres"}, func(db *gorm.DB) *gorm.DB { return db }},
	} {
		t.Run(pool.name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Servers()[0]
			wire := newWire(t, server.URL)
			db := newGORM(t, wire.url, pool.mode)
			wantNoTransaction(t, wire, pool.of(db))
			// A connection of its own is not a transaction either.
			if err := db.Connection(func(conn *gorm.DB) error {
				wantNoTransaction(t, wire, pool.of(conn))
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

func wantNoTransaction(t *testing.T, wire *wire, db *gorm.DB) {
	t.Helper()
	event := contractOf("outside").New("1", []byte(`{}`))
	before := wire.count()
	for name, pool := range map[string]outbox.GORMPool{
		"ConnPool":     db.Statement.ConnPool,
		"in a schema":  outbox.InSchemaGORM(db.Statement.ConnPool, "billing"),
		"nothing":      nil,
		"nothing else": outbox.InSchemaGORM(nil, "billing"),
	} {
		_, err := outbox.EmitGORM(t.Context(), pool, event)
		if !errors.Is(err, outbox.ErrNoTransaction) || !errors.Is(err, outbox.ErrRefused) {
			t.Errorf("%s: got %v, want ErrNoTransaction", name, err)
		}
	}
	if sent := wire.count().minus(before); sent.messages != 0 {
		t.Errorf("%d messages were sent, want none", sent.messages)
	}
}

// testEmitGORMInTransaction: inside, it works however the transaction came about.
func testEmitGORMInTransaction(t *testing.T, c cell, db *gorm.DB) {
	emit := func(tx *gorm.DB, aggregateID string) error {
		_, err := outbox.EmitGORM(t.Context(), outbox.InSchemaGORM(tx.Statement.ConnPool, c.db.Schema),
			c.event(aggregateID, `{}`))
		return err
	}
	undo := errors.New("undo")
	err := db.Transaction(func(tx *gorm.DB) error {
		// Nested transactions are savepoints, and a nested one may fail alone.
		if err := tx.Transaction(func(nested *gorm.DB) error {
			return errors.Join(emit(nested, "undone"), undo)
		}); !errors.Is(err, undo) {
			return err
		}
		return errors.Join(
			emit(tx, "1"),
			emit(tx.Session(&gorm.Session{PrepareStmt: true}), "2"),
			tx.Transaction(func(nested *gorm.DB) error { return emit(nested, "3") }),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Transaction(func(tx *gorm.DB) error { return errors.Join(emit(tx, "undone"), undo) }); !errors.Is(err,
		undo) {
		t.Errorf("got %v", err)
	}
	c.wantAggregates(t, "1", "2", "3")

	ended := db.Begin()
	if err := ended.Commit().Error; err != nil {
		t.Fatal(err)
	}
	if err := emit(ended, "late"); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("after the commit: got %v, want sql.ErrTxDone", err)
	}
}

// TestEmitGORMInPublic: without a schema named, the tables are those in public.
func TestEmitGORMInPublic(t *testing.T) {
	t.Parallel()
	db := newGORM(t, services.Postgres18(), gormMode{})
	statements, err := outbox.Statement("", contractOf("public").New("1", []byte(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	tx := &spy{ConnPool: db.Statement.ConnPool}
	if _, err := outbox.EmitGORM(t.Context(), tx, contractOf("public").New("1", []byte(`{}`))); !errors.Is(err, errSpied) {
		t.Fatalf("got %v", err)
	}
	if tx.query != statements.SQL {
		t.Errorf("sent %q, want %q", tx.query, statements.SQL)
	}
}

// A spy looks like GORM's pool in a transaction and keeps the query.
type spy struct {
	gorm.ConnPool
	query string
}

var errSpied = errors.New("spied")

func (s *spy) QueryContext(_ context.Context, query string, _ ...any) (*sql.Rows, error) {
	s.query = query
	return nil, errSpied
}
func (*spy) Commit() error   { return nil }
func (*spy) Rollback() error { return nil }
