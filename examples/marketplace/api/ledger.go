package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

type payment struct {
	Method string `json:"method"`
}

func (p payment) check() error {
	if p.Method != "card" && p.Method != "cash" {
		return errors.New("method must be card or cash")
	}
	return nil
}

// payOrder takes the buyer's money: by card when the vendor has accepted, in cash at the door.
func payOrder(ctx context.Context, tx pgx.Tx, r *http.Request, in payment) (result, error) {
	if in.Method == "cash" {
		return enter(ctx, tx, r, "payment", events.CashCollected, "delivered")
	}
	return enter(ctx, tx, r, "payment", events.PaymentSettled, "accepted", "shipped", "delivered")
}

// payVendor hands the money of a delivered order on.
func payVendor(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
	return enter(ctx, tx, r, "payout", events.VendorPayoutRecorded, "delivered")
}

// enter writes a line of the ledger. Each kind is there once for an order, which the table sees to.
func enter(ctx context.Context, tx pgx.Tx, r *http.Request, kind string,
	contract *outbox.ContractFor[events.LedgerEntryV1], states ...string,
) (result, error) {
	order, err := pathID(r, "id")
	if err != nil {
		return result{}, err
	}
	if _, err := lockedState(ctx, tx, states, selectOrderState, order); err != nil {
		return result{}, err
	}
	done := result{status: http.StatusCreated, ID: outbox.NewID()}
	entry := events.LedgerEntryV1{LedgerEventID: done.ID.String(), OrderID: order.String()}
	err = tx.QueryRow(ctx, `INSERT INTO ledger_entries (id, order_id, kind, currency, amount_cents)
		SELECT $1, id, $3, currency, total_cents FROM orders WHERE id = $2 RETURNING currency, amount_cents`, done.ID,
		order, kind).
		Scan(&entry.Currency, &entry.AmountCents)
	if err != nil {
		return done, database(err)
	}
	done.EventIDs, err = emit(ctx, tx, contract.New(entry.LedgerEventID, entry))
	return done, err
}
