package inbox

import (
	"context"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/outbox"
)

// First marks the event as handled by this consumer, and tells whether it was not before. Call it before the effect, in
// the transaction of the effect, with a name of the consumer that is its own forever: `[a-z0-9._-]`, 1 to 64.
//
// On false skip the effect and acknowledge the message. On an error do neither: roll back and let it come again. An
// error that is an [ErrRefused] wrote nothing and leaves the transaction usable; for any other, outbox.Retryable tells
// whether to run the transaction again at once, as under REPEATABLE READ when two deliveries met.
//
// While another transaction handles the same event, First waits for it to end; lock_timeout and ctx bound that.
func First[T outbox.PgxTx[R], R outbox.Row](ctx context.Context, tx T, consumer string, event outbox.ID) (bool, error) {
	return first(pgxConn[T, R](ctx, tx), consumer, event)
}

// FirstSQL is [First] in a transaction of database/sql.
func FirstSQL(ctx context.Context, tx outbox.SQLTx, consumer string, event outbox.ID) (bool, error) {
	return first(sqlConn(ctx, tx), consumer, event)
}

// FirstGORM is [First] in a GORM transaction: pass the Statement.ConnPool of the tx that db.Transaction hands out.
// Outside a transaction it is an [ErrNoTransaction].
func FirstGORM(ctx context.Context, pool outbox.GORMPool, consumer string, event outbox.ID) (bool, error) {
	return first(gormConn(ctx, pool), consumer, event)
}

func first(c conn, consumer string, event outbox.ID) (bool, error) {
	problems := []string{checkConsumer(consumer)}
	if event == (outbox.ID{}) {
		problems = append(problems, "event id: missing")
	}
	crash.Point("first.before")
	isFirst, err := c.send("first", problems, consumer, event.String())
	if isFirst {
		crash.Point("first.after")
	}
	return isFirst, err
}
