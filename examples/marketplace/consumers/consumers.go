// Package consumers is what the marketplace does when it hears of events: notices about licences, and a read model of
// orders. Events come more than once, and not always in order; each consumer says how it lives with that.
package consumers

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

// ignoreAllBut names the types that a consumer has no handler for. One that a later version of the marketplace adds is
// not among them: while that version is rolled out, the processes of this one give it back, and those of the next
// handle it.
func ignoreAllBut(handled ...outbox.AnyContract) consumer.Rule {
	return consumer.Ignore(slices.DeleteFunc(slices.Clone(events.EventTypes), func(eventType string) bool {
		return slices.ContainsFunc(handled, func(contract outbox.AnyContract) bool {
			return contract.Contract().Type == eventType
		})
	})...)
}

// once runs an effect and marks its event as handled in the same transaction, unless it is marked already.
func once(ctx context.Context, pool *pgxpool.Pool, name string, event *consumer.Event,
	effect func(ctx context.Context, tx pgx.Tx) error,
) error {
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
