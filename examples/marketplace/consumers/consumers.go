// Package consumers is what the marketplace does when it hears of events: notices about licences, and a read model of
// orders. Events come more than once, and not always in order; each consumer says how it lives with that.
package consumers

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

// once runs an effect and marks its event as handled in the same transaction, unless it is marked already.
func once(ctx context.Context, pool *pgxpool.Pool, name string, event *consumer.Event, effect func(ctx context.Context, tx pgx.Tx) error) error {
	return outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		first, err := inbox.First(ctx, tx, name, event.ID)
		if err != nil {
			return err
		}
		if !first {
			return consumer.ErrDuplicate
		}
		return effect(ctx, tx)
	})
}
