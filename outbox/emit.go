package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/posthaste-dev/posthaste/internal/crash"
)

// Row is what a query for one row answers.
type Row interface {
	Scan(dest ...any) error
}

// PgxTx is a pgx transaction, pgx.Tx. Pools and connections are not: they have no Commit, so writing
// an event outside a transaction does not compile. The type parameter stands for pgx.Row and is
// inferred; it is why this package need not import pgx.
type PgxTx[R Row] interface {
	QueryRow(ctx context.Context, sql string, args ...any) R
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// SQLTx is a transaction of database/sql: *sql.Tx or *sqlx.Tx. A *sql.DB or *sql.Conn is not. A bun.Tx
// fits the interface but rewrites the query and drops its arguments: pass the *sql.Tx inside it, tx.Tx.
type SQLTx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// GORMPool is what GORM has as Statement.ConnPool, in a transaction and outside.
type GORMPool interface {
	// QueryContext and not QueryRowContext: with PrepareStmt, GORM's QueryRowContext answers a statement
	// that cannot be prepared with an empty sql.Row, whose Scan panics.
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Emit writes events in a pgx transaction and returns a receipt for each, in the order given.
//
// An error that is an [ErrRefused] wrote nothing and leaves the transaction usable. Any other error is
// the driver's or the database's: roll back, and [Retryable] tells whether to run it all again.
//
// T is a type parameter, and not the interface itself, so that the compiler names the method Commit
// when it refuses a pool.
func Emit[T PgxTx[R], R Row](ctx context.Context, tx T, events ...Event) ([]Receipt, error) {
	return emit(ctx, schemaOf(tx), events, func(query string, args []any, answer *string) error {
		return tx.QueryRow(ctx, query, args...).Scan(answer)
	})
}

// EmitSQL is [Emit] in a transaction of database/sql.
func EmitSQL(ctx context.Context, tx SQLTx, events ...Event) ([]Receipt, error) {
	return emit(ctx, schemaOf(tx), events, func(query string, args []any, answer *string) error {
		return tx.QueryRowContext(ctx, query, args...).Scan(answer)
	})
}

// EmitGORM is [Emit] in a GORM transaction: pass the Statement.ConnPool of the tx that db.Transaction
// hands out. GORM's type is the same inside and outside a transaction, so here the rule is checked when
// it runs, before anything is sent: outside it is an [ErrNoTransaction].
func EmitGORM(ctx context.Context, pool GORMPool, events ...Event) ([]Receipt, error) {
	schema := DefaultSchema
	if named, ok := pool.(gormInSchema); ok {
		pool, schema = named.GORMPool, named.schema
	}
	if _, ok := pool.(interface {
		Commit() error
		Rollback() error
	}); !ok {
		return nil, failed(ctx, ErrNoTransaction)
	}
	return emit(ctx, schema, events, func(query string, args []any, answer *string) error {
		rows, err := pool.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() { // once, and then on to the end, where an error may wait
			err = rows.Scan(answer)
		}
		return errors.Join(err, rows.Err())
	})
}

func emit(ctx context.Context, schema string, events []Event,
	query func(string, []any, *string) error,
) ([]Receipt, error) {
	stmt, err := Statement(schema, events...)
	if err != nil {
		return nil, failed(ctx, err)
	}
	var answer string
	crash.Point("emit.before_insert")
	if err := query(stmt.SQL, stmt.Args, &answer); err != nil {
		return nil, failed(ctx, fmt.Errorf("outbox: emit: %w%s", err, hint(err, schema)))
	}
	crash.Point("emit.after_insert")
	receipts, err := stmt.Receipts(answer)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return receipts, nil
}

// InSchema returns tx for an outbox whose tables are in this schema instead of public:
//
//	outbox.Emit(ctx, outbox.InSchema(tx, "billing"), events...)
func InSchema[T PgxTx[R], R Row](tx T, schema string) PgxTx[R] {
	return pgxInSchema[R]{PgxTx: tx, schema: schema}
}

// InSchemaSQL is [InSchema] for transactions of database/sql.
func InSchemaSQL(tx SQLTx, schema string) SQLTx { return sqlInSchema{SQLTx: tx, schema: schema} }

// InSchemaGORM is [InSchema] for the pool of a GORM transaction. Outside a transaction [EmitGORM] refuses
// what it returns.
func InSchemaGORM(pool GORMPool, schema string) GORMPool {
	return gormInSchema{GORMPool: pool, schema: schema}
}

type pgxInSchema[R Row] struct {
	PgxTx[R]
	schema string
}

type sqlInSchema struct {
	SQLTx
	schema string
}

type gormInSchema struct {
	GORMPool
	schema string
}

// OutboxSchema is asked for by whoever writes or reads the tables through the transaction, here and in
// the packages beside this one.
func (p pgxInSchema[R]) OutboxSchema() string { return p.schema }

// OutboxSchema is the same for database/sql.
func (s sqlInSchema) OutboxSchema() string { return s.schema }

// OutboxSchema is the same for GORM.
func (g gormInSchema) OutboxSchema() string { return g.schema }

// OutboxPool is the pool itself: only that tells whether it is in a transaction.
func (g gormInSchema) OutboxPool() GORMPool { return g.GORMPool }

func schemaOf(tx any) string {
	if named, ok := tx.(interface{ OutboxSchema() string }); ok {
		return named.OutboxSchema()
	}
	return DefaultSchema
}
