package consumers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/inbox"
)

// OrderReadModelName is what the inbox knows the read model by, forever.
const OrderReadModelName = "order-read-model"

// OrderReadModel keeps the table order_read_model as the orders are. Events of one order are handled in their order as
// long as nothing fails; when something does, a late one must not take the order back to an older state, and Newer sees
// to that.
func OrderReadModel(pool *pgxpool.Pool, config consumer.Config) (*consumer.Consumer, error) {
	config.Name = OrderReadModelName
	m := readModel{pool: pool}
	return consumer.New(config, ignoreAllBut(events.OrderCreated, events.OrderStateChanged, events.OrderCanceled,
		events.OrderExpired),
		consumer.On(events.OrderCreated, m.created),
		consumer.On(events.OrderStateChanged,
			func(ctx context.Context, event *consumer.Event, changed events.OrderStateChangedV1) error {
				return m.moved(ctx, event, changed.To, changed.Revision)
			}),
		consumer.On(events.OrderCanceled, func(ctx context.Context, event *consumer.Event, ended events.OrderEndedV1) error {
			return m.moved(ctx, event, "canceled", ended.Revision)
		}),
		consumer.On(events.OrderExpired, func(ctx context.Context, event *consumer.Event, ended events.OrderEndedV1) error {
			return m.moved(ctx, event, "expired", ended.Revision)
		}))
}

type readModel struct{ pool *pgxpool.Pool }

const upsertFacts = `INSERT INTO order_read_model (order_id, buyer_store_id, vendor_store_id, currency, total_cents) 
	VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (order_id) DO UPDATE SET buyer_store_id = $2, vendor_store_id = $3, currency = $4, total_cents = $5`

// created writes the facts that never change, also when later events were here first, and then the first state.
func (m readModel) created(ctx context.Context, event *consumer.Event, order events.OrderCreatedV1) error {
	return once(ctx, m.pool, OrderReadModelName, event, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, upsertFacts, event.Aggregate.ID, order.BuyerStoreID, order.VendorStoreID, order.Currency,
			order.TotalCents)
		if err != nil {
			return fmt.Errorf("write the order: %w", err)
		}
		return setState(ctx, tx, event, "pending", 1)
	})
}

// moved writes the state that an event carries.
func (m readModel) moved(ctx context.Context, event *consumer.Event, state string, revision int64) error {
	return once(ctx, m.pool, OrderReadModelName, event, func(ctx context.Context, tx pgx.Tx) error {
		return setState(ctx, tx, event, state, revision)
	})
}

const upsertState = `INSERT INTO order_read_model (order_id, state, revision, applied) VALUES ($1, $2, $3, 1)
	ON CONFLICT (order_id) DO UPDATE SET state = $2, revision = $3, applied = order_read_model.applied + 1, 
	updated_at = now()`

// setState writes a state unless a newer one is there. Leaving an older one out loses nothing: each event carries the
// whole of it.
func setState(ctx context.Context, tx pgx.Tx, event *consumer.Event, state string, revision int64) error {
	newer, err := inbox.Newer(ctx, tx, OrderReadModelName, event.Aggregate, event.Seq)
	if err != nil || !newer {
		return err
	}
	if _, err := tx.Exec(ctx, upsertState, event.Aggregate.ID, state, revision); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}
