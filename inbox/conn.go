package inbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

//go:embed sql/*.sql
var statements embed.FS

// conn is a transaction in the hands of any driver, and the schema of the tables. Every argument and every answer is
// text, so that no driver has to know a PostgreSQL type.
type conn struct {
	schema string
	query  func(statement string, args []any, answer *string) error
	err    error // why there is no transaction
}

func pgxConn[T outbox.PgxTx[R], R outbox.Row](ctx context.Context, tx T) conn {
	return conn{schema: schemaOf(tx), query: func(statement string, args []any, answer *string) error {
		return tx.QueryRow(ctx, statement, args...).Scan(answer)
	}}
}

func sqlConn(ctx context.Context, tx outbox.SQLTx) conn {
	return conn{schema: schemaOf(tx), query: func(statement string, args []any, answer *string) error {
		return tx.QueryRowContext(ctx, statement, args...).Scan(answer)
	}}
}

func gormConn(ctx context.Context, pool outbox.GORMPool) conn {
	schema := schemaOf(pool)
	if named, ok := pool.(interface{ OutboxPool() outbox.GORMPool }); ok {
		pool = named.OutboxPool()
	}
	if _, ok := pool.(interface {
		Commit() error
		Rollback() error
	}); !ok {
		return conn{err: ErrNoTransaction}
	}
	return conn{schema: schema, query: func(statement string, args []any, answer *string) error {
		rows, err := pool.QueryContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		return scanAll(rows, answer)
	}}
}

// scanAll reads the one row, and on to the end, where an error may wait.
func scanAll(rows *sql.Rows, answer *string) (err error) {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		err = rows.Scan(answer)
	}
	return errors.Join(err, rows.Err())
}

// send runs one statement that answers 1 or 0, unless there is a problem with its arguments.
func (c conn) send(name string, problems []string, args ...any) (bool, error) {
	if c.err != nil {
		return false, c.err
	}
	if err := invalid(name, problems); err != nil {
		return false, err
	}
	var answer string
	if err := c.query(statementText(c.schema, name), args, &answer); err != nil {
		return false, fmt.Errorf("inbox: %s: %w%s", name, err, hint(err, "consumer"))
	}
	if answer != "0" && answer != "1" {
		return false, fmt.Errorf("inbox: %s: the database answered %.20q: is a trigger or rule on the inbox's tables in "+
			"the way?", name, answer)
	}
	return answer == "1", nil
}

func schemaOf(tx any) string {
	if named, ok := tx.(interface{ OutboxSchema() string }); ok && named.OutboxSchema() != "" {
		return named.OutboxSchema()
	}
	return outbox.DefaultSchema
}

// statementText reads a statement and names the schema in it.
func statementText(schema, name string) string {
	text, _ := statements.ReadFile("sql/" + name + ".sql") // embedded
	return strings.ReplaceAll(string(text), "{schema}", `"`+strings.ReplaceAll(schema, `"`, `""`)+`"`)
}
