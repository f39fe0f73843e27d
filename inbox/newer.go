package inbox

import (
	"cmp"
	"context"
	"strconv"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Newer keeps a consumer from going backwards. It remembers seq, the outbox_seq of the message, as the newest event of
// the aggregate that this consumer has applied, and tells whether it is newer than what was applied before. Call it
// after [First], in the same transaction; on false leave the effect out, commit, and acknowledge.
//
// It is for consumers that store the state which an event carries, as read models and caches do: there an older event
// that comes late, by a redrive or as a late copy, must not undo a newer one, and leaving it out loses nothing. Where
// every event counts, as with notices and sums, use First alone: Newer would drop the late ones for good. It cannot see
// that an event is missing, since the numbers of one aggregate have gaps.
//
// An aggregate is one of its namespace: events of others with the same type and id neither are older nor make these so.
// For a message it is the consumer.Event's Aggregate.
//
// Two transactions at the same aggregate take turns. Numbers of two outboxes cannot be compared: give each a consumer's
// name of its own.
func Newer[T outbox.PgxTx[R], R outbox.Row](ctx context.Context, tx T, consumer string, aggregate outbox.Aggregate,
	seq int64,
) (bool, error) {
	return newer(pgxConn[T, R](ctx, tx), consumer, aggregate, seq)
}

// NewerSQL is [Newer] in a transaction of database/sql.
func NewerSQL(ctx context.Context, tx outbox.SQLTx, consumer string, aggregate outbox.Aggregate,
	seq int64,
) (bool, error) {
	return newer(sqlConn(ctx, tx), consumer, aggregate, seq)
}

// NewerGORM is [Newer] in a GORM transaction, as [FirstGORM] is [First].
func NewerGORM(ctx context.Context, pool outbox.GORMPool, consumer string, aggregate outbox.Aggregate,
	seq int64,
) (bool, error) {
	return newer(gormConn(ctx, pool), consumer, aggregate, seq)
}

func newer(c conn, consumer string, aggregate outbox.Aggregate, seq int64) (bool, error) {
	namespace := cmp.Or(aggregate.Namespace, outbox.DefaultNamespace)
	problems := []string{
		checkConsumer(consumer),
		checkText("namespace", namespace, outbox.MaxNameBytes),
		checkText("aggregate type", aggregate.Type, outbox.MaxNameBytes),
		checkText("aggregate id", aggregate.ID, outbox.MaxAggregateIDBytes),
	}
	if seq <= 0 {
		problems = append(problems, "seq: not positive: is it the message's outbox_seq?")
	}
	return c.send("newer", problems, consumer, namespace, aggregate.Type, aggregate.ID, strconv.FormatInt(seq, 10))
}
