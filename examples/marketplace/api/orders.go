package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

type order struct {
	ID            outbox.ID `json:"id"`
	BuyerStoreID  outbox.ID `json:"buyerStoreId"`
	VendorStoreID outbox.ID `json:"vendorStoreId"`
	Currency      string    `json:"currency"`
	TotalCents    int64     `json:"totalCents"`
	State         string    `json:"state"`
	Revision      int64     `json:"revision"`
}

const selectOrder = `SELECT id, buyer_store_id, vendor_store_id, currency, total_cents, state, revision FROM orders ` +
	`WHERE id = $1`

// selectOrderState locks the row until the commit: that is what makes the order of one order's events the order of its
// changes.
const selectOrderState = `SELECT state FROM orders WHERE id = $1 FOR UPDATE`

type newOrder struct {
	BuyerStoreID  outbox.ID `json:"buyerStoreId"`
	VendorStoreID outbox.ID `json:"vendorStoreId"`
	Currency      string    `json:"currency"`
	Lines         []newLine `json:"lines"`
}

type newLine struct {
	ProductID      string `json:"productId"`
	Quantity       int    `json:"quantity"`
	UnitPriceCents int64  `json:"unitPriceCents"`
}

func (o newOrder) check() error {
	if len(o.Currency) != 3 || len(o.Lines) == 0 || len(o.Lines) > 100 {
		return errors.New("an order has a currency of 3 letters, and 1 to 100 lines")
	}
	for _, line := range o.Lines {
		if checkText("productId", line.ProductID) != nil || line.Quantity < 1 || line.Quantity > 10_000 ||
			line.UnitPriceCents < 0 || line.UnitPriceCents > 1e9 {
			return errors.New("a line has a productId, a quantity of 1 to 10000, and a price of 0 to 1000000000 cents")
		}
	}
	return nil
}

// createOrder places an order and has its vendor told: one transaction, and two events, of two aggregates and on two
// topics.
func createOrder(ctx context.Context, tx pgx.Tx, _ *http.Request, in newOrder) (result, error) {
	done := result{status: http.StatusCreated, ID: outbox.NewID(), State: "pending", Revision: 1}
	placed := events.OrderCreatedV1{
		OrderID: done.ID.String(), CheckoutGroupID: outbox.NewID().String(),
		BuyerStoreID: in.BuyerStoreID.String(), VendorStoreID: in.VendorStoreID.String(), Currency: in.Currency,
	}
	var lines pgx.Batch
	for _, line := range in.Lines {
		id := outbox.NewID()
		lines.Queue(`INSERT INTO order_lines (id, order_id, product_id, quantity, unit_price_cents) VALUES ($1, $2, $3, `+
			`$4, $5)`,
			id, done.ID, line.ProductID, line.Quantity, line.UnitPriceCents)
		placed.Lines = append(placed.Lines, events.LineItem{
			LineItemID: id.String(), ProductID: line.ProductID, Quantity: line.Quantity, UnitPriceCents: line.UnitPriceCents,
		})
		placed.TotalCents += int64(line.Quantity) * line.UnitPriceCents
		done.LineIDs = append(done.LineIDs, id)
	}
	_, err := tx.Exec(ctx, `INSERT INTO orders (id, checkout_group_id, buyer_store_id, vendor_store_id, currency, `+
		`total_cents) VALUES ($1, $2, $3, $4, $5, $6)`,
		done.ID, placed.CheckoutGroupID, in.BuyerStoreID, in.VendorStoreID, placed.Currency, placed.TotalCents)
	if err != nil {
		return done, database(err)
	}
	if err := tx.SendBatch(ctx, &lines).Close(); err != nil {
		return done, database(err)
	}
	done.EventIDs, err = emit(ctx, tx, events.OrderCreated.New(placed.OrderID, placed),
		notifyStore(placed.VendorStoreID, "order_placed", placed.OrderID))
	return done, err
}

// notifyStore is the request for a message to a store about an order. Sending it is the work of whoever reads the
// topic.
func notifyStore(storeID, template, orderID string) outbox.Event {
	id := outbox.NewID().String()
	return events.NotificationRequested.New(id, events.NotificationRequestedV1{
		NotificationID: id, RecipientID: storeID, Channel: "email", Template: template,
		Values: map[string]string{"orderId": orderID},
	})
}

// moveOrder makes a change that takes an order from one state to the next.
func moveOrder(to string,
	from ...string,
) func(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
	return func(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
		moved, before, err := setOrderState(ctx, tx, r, to, from...)
		if err != nil {
			return moved, err
		}
		moved.EventIDs, err = emit(ctx, tx, events.OrderStateChanged.New(moved.ID.String(), events.OrderStateChangedV1{
			OrderID: moved.ID.String(), From: before, To: to, Revision: moved.Revision,
		}))
		return moved, err
	}
}

// setOrderState changes the state of the path's order.
func setOrderState(ctx context.Context, tx pgx.Tx, r *http.Request, to string,
	from ...string,
) (moved result, before string, err error) {
	id, err := pathID(r, "id")
	if err != nil {
		return moved, "", err
	}
	if before, err = lockedState(ctx, tx, from, selectOrderState, id); err != nil {
		return moved, "", err
	}
	moved = result{ID: id, State: to}
	err = tx.QueryRow(ctx, `UPDATE orders SET state = $2, revision = revision + 1 WHERE id = $1 RETURNING revision`, id,
		to).Scan(&moved.Revision)
	return moved, before, database(err)
}

// packLine says that a line of the path's order is packed. The order's row is locked too: the event is the order's.
func packLine(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return result{}, err
	}
	line, err := pathID(r, "line")
	if err != nil {
		return result{}, err
	}
	if _, err := lockedState(ctx, tx, []string{"accepted"}, selectOrderState, id); err != nil {
		return result{}, err
	}
	const selectLineState = `SELECT state FROM order_lines WHERE id = $1 AND order_id = $2 FOR UPDATE`
	before, err := lockedState(ctx, tx, []string{"reserved"}, selectLineState, line, id)
	if err != nil {
		return result{}, err
	}
	if _, err := tx.Exec(ctx, `UPDATE order_lines SET state = 'packed' WHERE id = $1`, line); err != nil {
		return result{}, database(err)
	}
	ids, err := emit(ctx, tx, events.LineItemStateChanged.New(id.String(), events.LineItemStateChangedV1{
		OrderID: id.String(), LineItemID: line.String(), From: before, To: "packed",
	}))
	return result{ID: line, State: "packed", EventIDs: ids}, err
}

type ending struct {
	Reason string `json:"reason"`
}

func (e ending) check() error { return checkOptional("reason", e.Reason) }

// cancelOrder takes an order back, and frees what was held for it.
func cancelOrder(ctx context.Context, tx pgx.Tx, r *http.Request, in ending) (result, error) {
	return endOrder(ctx, tx, r, "canceled", events.OrderCanceled, in.Reason, "pending", "accepted")
}

// expireOrder ends an order that nobody has accepted in time. A scheduler would call it.
func expireOrder(ctx context.Context, tx pgx.Tx, r *http.Request, in ending) (result, error) {
	return endOrder(ctx, tx, r, "expired", events.OrderExpired, in.Reason, "pending")
}

func endOrder(
	ctx context.Context, tx pgx.Tx, r *http.Request, to string, contract *outbox.ContractFor[events.OrderEndedV1],
	reason string, from ...string,
) (result, error) {
	ended, _, err := setOrderState(ctx, tx, r, to, from...)
	if err != nil {
		return ended, err
	}
	id := ended.ID.String()
	emitted := []outbox.Event{contract.New(id, events.OrderEndedV1{OrderID: id, Reason: reason, Revision: ended.Revision})}
	rows, err := tx.Query(ctx, `UPDATE order_lines SET state = 'released' WHERE order_id = $1 AND state <> 'released' `+
		`RETURNING product_id, quantity`, ended.ID)
	if err != nil {
		return ended, database(err)
	}
	released := events.ReservationReleasedV1{OrderID: id}
	_, err = pgx.ForEachRow(rows, []any{&released.ProductID, &released.Quantity}, func() error {
		emitted = append(emitted, events.ReservationReleased.New(id, released))
		return nil
	})
	if err != nil {
		return ended, database(err)
	}
	ended.EventIDs, err = emit(ctx, tx, emitted...)
	return ended, err
}
