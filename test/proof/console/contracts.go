package console

import (
	"encoding/json"
	"errors"

	"github.com/posthaste-dev/posthaste/outbox"
)

// The topics of the shop.
const (
	ordersTopic    = "orders"
	paymentsTopic  = "payments"
	invoicesTopic  = "invoices"
	shipmentsTopic = "shipments"
	emailsTopic    = "emails"
	pricesTopic    = "prices"
	couponsTopic   = "coupons"
)

// data is what the shop writes: whatever it likes.
type data = map[string]any

// kind is an event type of the shop.
type kind = outbox.ContractFor[data]

// The types of the shop. Of the last no relay knows anything: whoever writes it has been deployed too early.
var (
	orderCreated     = define("order_created", "order", ordersTopic, outbox.OnDeadSkip, nil)
	orderPaid        = define("order_paid", "order", paymentsTopic, outbox.OnDeadSkip, nil)
	shipmentSent     = define("shipment_sent", "order", shipmentsTopic, outbox.OnDeadSkip, nil)
	invoiceIssued    = define("invoice_issued", "customer", invoicesTopic, outbox.OnDeadSkip, nil)
	emailRequested   = define("email_requested", "customer", emailsTopic, outbox.OnDeadSkip, nil)
	priceChanged     = define("price_changed", "product", pricesTopic, outbox.OnDeadBlock, validPrice)
	priceAnyhow      = define("price_changed", "product", pricesTopic, outbox.OnDeadBlock, nil)
	couponRedeemed   = define("coupon_redeemed", "coupon", couponsTopic, outbox.OnDeadBlock, nil)
	loyaltyCollected = define("loyalty_points_collected", "customer", "loyalty", outbox.OnDeadSkip, nil)
)

func define(eventType, aggregate, topic string, dead outbox.OnDead, valid func(json.RawMessage) error) *kind {
	return outbox.Define[data](outbox.Contract{
		Type: eventType, Aggregate: aggregate, Topic: topic, OnDead: dead, Validate: valid,
		// What is tried again is so for as long as somebody may look, also on a slow machine.
		MaxAttempts: 1_000, MaxBytes: outbox.MaxContractBytes,
	})
}

// validPrice is what the relays' contract asks of a price. The producer of the shop has forgotten it.
func validPrice(text json.RawMessage) error {
	var price struct{ Currency string }
	if err := json.Unmarshal(text, &price); err != nil {
		return errors.New("the data is no price")
	}
	if len(price.Currency) != 3 {
		return errors.New("currency must be three letters, as EUR")
	}
	return nil
}

// known is what the relays of the shop publish.
func known(more ...outbox.AnyContract) (*outbox.Registry, error) {
	return outbox.NewRegistry(append(more, orderCreated, orderPaid, shipmentSent, invoiceIssued, emailRequested,
		priceChanged, couponRedeemed)...)
}
