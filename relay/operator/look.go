package operator

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

//go:embed sql/*.sql
var files embed.FS

// statementOf is the text of one of our files. Pieces are put in before the schema's name is.
func statementOf(schema, name string, pieces ...string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is embedded
	}
	return sqltext.In(schema, strings.NewReplacer(pieces...).Replace(sqltext.Bare(string(text))))
}

// lookTimeout ends a statement that somebody's question would otherwise keep running. Each is bounded by itself; this
// is for a server that has no time, and for locks.
const lookTimeout = "10s"

// looking is a transaction that only reads: everything that one answer says is of one moment.
type looking struct {
	pgx.Tx
	schema string
	window int
	now    time.Time // by the database's clock
}

// look runs a question. what names it in errors.
func (o *Operator) look(ctx context.Context, what string, query func(l *looking) error) error {
	err := o.inLook(ctx, query)
	switch {
	case err == nil:
		return nil
	case sqlstate.PermissionDenied(err):
		err = fmt.Errorf("%w; run `outboxctl grant viewer <role>`, or operator", err)
	case sqlstate.Of(err) == sqlstate.QueryCanceled && ctx.Err() == nil:
		err = fmt.Errorf("%w: the database did not answer within %s; ask for less, or later", err, lookTimeout)
	}
	return fmt.Errorf("operator: %s: %w", what, err)
}

func (o *Operator) inLook(ctx context.Context, query func(l *looking) error) error {
	tx, err := o.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	l := &looking{Tx: tx, schema: o.schema, window: o.window}
	if err := tx.QueryRow(ctx, l.sql("look_begin"), lookTimeout).Scan(&l.now); err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	return query(l)
}

func (l *looking) sql(name string, pieces ...string) string {
	return statementOf(l.schema, name, pieces...)
}

// table is a table's name with its schema.
func (l *looking) table(name string) string { return pgx.Identifier{l.schema, name}.Sanitize() }

// topics asks for the topics of event types; nil: of all.
func (l *looking) topics(ctx context.Context, types []string) (map[string]string, error) {
	return l.topicsBy(ctx, "topics", types)
}

// topicsBy are the topics that a statement finds, each with what it is the topic of.
func (l *looking) topicsBy(ctx context.Context, statement string, of []string) (map[string]string, error) {
	rows, err := l.Query(ctx, l.sql(statement), of)
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	topics := map[string]string{}
	var key, topic string
	_, err = pgx.ForEachRow(rows, []any{&key, &topic}, func() error {
		topics[key] = topic
		return nil
	})
	return topics, err //nolint:wrapcheck // look says what it was
}
