package outbox

import (
	"context"
	"database/sql"
	"fmt"
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

// SQLTx is a transaction of database/sql: *sql.Tx, *sqlx.Tx, bun.Tx. A *sql.DB or *sql.Conn is not.
type SQLTx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// GORMPool is what GORM has as Statement.ConnPool, in a transaction and outside.
type GORMPool interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Emit writes events in a pgx transaction and returns a receipt for each, in the order given.
//
// An error that is an [ErrRefused] wrote nothing and leaves the transaction usable; with any other
// error PostgreSQL has given the transaction up, and [Retryable] tells whether to run it again.
func Emit[R Row](ctx context.Context, tx PgxTx[R], events ...Event) ([]Receipt, error) {
	return emit(ctx, schemaOf(tx), events, func(query string, args []any) Row {
		return tx.QueryRow(ctx, query, args...)
	})
}

// EmitSQL is [Emit] in a transaction of database/sql.
func EmitSQL(ctx context.Context, tx SQLTx, events ...Event) ([]Receipt, error) {
	return emit(ctx, schemaOf(tx), events, func(query string, args []any) Row {
		return tx.QueryRowContext(ctx, query, args...)
	})
}

// EmitGORM is [Emit] in a GORM transaction: pass the Statement.ConnPool of the tx that db.Transaction
// hands out. GORM's type is the same inside and outside a transaction, so here the rule is checked when
// it runs, before anything is sent: outside it is an [ErrNoTransaction].
func EmitGORM(ctx context.Context, pool GORMPool, events ...Event) ([]Receipt, error) {
	tx, ok := pool.(SQLTx)
	if !ok {
		return nil, refuse(ctx, ErrNoTransaction)
	}
	return EmitSQL(ctx, tx, events...)
}

func emit(ctx context.Context, schema string, events []Event, query func(string, []any) Row) ([]Receipt, error) {
	stmt, err := Statement(schema, events...)
	if err != nil {
		return nil, refuse(ctx, err)
	}
	var answer string
	if err := query(stmt.SQL, stmt.Args).Scan(&answer); err != nil {
		return nil, fmt.Errorf("outbox: emit: %w", err)
	}
	receipts, err := stmt.Receipts(answer)
	if err != nil {
		return nil, refuse(ctx, err)
	}
	return receipts, nil
}

// InSchema returns tx for an outbox whose tables are in this schema instead of public:
//
//	outbox.Emit(ctx, outbox.InSchema(tx, "billing"), events...)
func InSchema[R Row](tx PgxTx[R], schema string) PgxTx[R] {
	return pgxInSchema[R]{PgxTx: tx, schema: schema}
}

// InSchemaSQL is [InSchema] for transactions of database/sql.
func InSchemaSQL(tx SQLTx, schema string) SQLTx { return sqlInSchema{SQLTx: tx, schema: schema} }

type pgxInSchema[R Row] struct {
	PgxTx[R]
	schema string
}

type sqlInSchema struct {
	SQLTx
	schema string
}

func (p pgxInSchema[R]) outboxSchema() string { return p.schema }
func (s sqlInSchema) outboxSchema() string    { return s.schema }

func schemaOf(tx any) string {
	if named, ok := tx.(interface{ outboxSchema() string }); ok {
		return named.outboxSchema()
	}
	return DefaultSchema
}
