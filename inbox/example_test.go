package inbox_test

import (
	"context"
	"database/sql"
	"time"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

// The mark and the effect are in one transaction, the one that the handler is given. It gets no pool, so it cannot
// commit anything elsewhere: a mark that commits alone loses the event when the effect fails, and an effect that
// commits alone happens again when the mark does not.
func ExampleFirstSQL() {
	noteOrder := func(ctx context.Context, tx *sql.Tx, orderID string) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO notices (order_id) VALUES ($1)", orderID)
		return err
	}
	// nil is to be acknowledged, also when the event was handled before; an error is not, so that it comes again.
	handle := func(ctx context.Context, db *sql.DB, eventID outbox.ID, orderID string) error {
		return outbox.InTxSQL(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
			first, err := inbox.FirstSQL(ctx, tx, "notices", eventID)
			if err != nil || !first {
				return err
			}
			return noteOrder(ctx, tx, orderID)
		})
	}
	_ = handle
}

// A read model takes the newest state of each order. An older event that comes late is marked as handled and left out.
func ExampleNewerSQL() {
	handle := func(ctx context.Context, db *sql.DB, eventID outbox.ID, order outbox.Aggregate, status string,
		seq int64,
	) error {
		return outbox.InTxSQL(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
			if first, err := inbox.FirstSQL(ctx, tx, "order-list", eventID); err != nil || !first {
				return err
			}
			if newer, err := inbox.NewerSQL(ctx, tx, "order-list", order, seq); err != nil || !newer {
				return err
			}
			_, err := tx.ExecContext(ctx,
				"INSERT INTO order_list (id, status) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET status = $2", order.ID, status)
			return err
		})
	}
	_ = handle
}

// Retention runs beside the consumer until the context ends.
func ExampleNewRetention() {
	consume := func(ctx context.Context, db *sql.DB) error {
		// Pub/Sub keeps a message for 7 days, and operators can redeliver for 30: an event may come again after 37.
		retention, err := inbox.NewRetention(db, inbox.RetentionConfig{
			Keep: 40 * 24 * time.Hour, Horizon: 37 * 24 * time.Hour,
		})
		if err != nil {
			return err
		}
		go func() { _ = retention.Run(ctx) }()
		// ... receive and handle ...
		return nil
	}
	_ = consume
}
