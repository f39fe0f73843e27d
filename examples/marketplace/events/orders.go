package events

import (
	"errors"

	"github.com/posthaste-dev/posthaste/outbox"
)

// OrderCreated says that a checkout made an order at one vendor.
var OrderCreated = outbox.Define[OrderCreatedV1](outbox.Contract{
	Type: "order_created", Version: 1, Aggregate: VendorOrder, Topic: domainTopic,
})

// OrderStateChanged says that an order moved from one state to the next.
var OrderStateChanged = outbox.Define[OrderStateChangedV1](outbox.Contract{
	Type: "order_state_changed", Version: 1, Aggregate: VendorOrder, Topic: domainTopic,
})

// LineItemStateChanged says the same of one line of an order.
var LineItemStateChanged = outbox.Define[LineItemStateChangedV1](outbox.Contract{
	Type: "line_item_state_changed", Version: 1, Aggregate: VendorOrder, Topic: domainTopic,
})

// OrderExpired says that nobody accepted the order in time.
var OrderExpired = outbox.Define[OrderEndedV1](outbox.Contract{
	Type: "order_expired", Version: 1, Aggregate: VendorOrder, Topic: domainTopic,
})

// OrderCanceled says that the buyer or the vendor took the order back.
var OrderCanceled = outbox.Define[OrderEndedV1](outbox.Contract{
	Type: "order_canceled", Version: 1, Aggregate: VendorOrder, Topic: domainTopic,
})

// ReservationReleased says that stock held for an order is free again.
var ReservationReleased = outbox.Define[ReservationReleasedV1](outbox.Contract{
	Type: "reservation_released", Version: 1, Aggregate: VendorOrder, Topic: domainTopic,
})

// OrderCreatedV1 is the payload of [OrderCreated]. Amounts are in the currency's smallest unit.
type OrderCreatedV1 struct {
	OrderID         string     `json:"orderId"`
	CheckoutGroupID string     `json:"checkoutGroupId"`
	BuyerStoreID    string     `json:"buyerStoreId"`
	VendorStoreID   string     `json:"vendorStoreId"`
	Currency        string     `json:"currency"`
	TotalCents      int64      `json:"totalCents"`
	Lines           []LineItem `json:"lines"`
}

// LineItem is one line of an order.
type LineItem struct {
	LineItemID     string `json:"lineItemId"`
	ProductID      string `json:"productId"`
	Quantity       int    `json:"quantity"`
	UnitPriceCents int64  `json:"unitPriceCents"`
}

// Validate refuses an order that nobody could deliver.
func (o OrderCreatedV1) Validate() error {
	if o.OrderID == "" || o.VendorStoreID == "" {
		return errors.New("orderId and vendorStoreId are required")
	}
	if len(o.Lines) == 0 {
		return errors.New("lines: at least one is required")
	}
	return nil
}

// OrderStateChangedV1 is the payload of [OrderStateChanged].
type OrderStateChangedV1 struct {
	OrderID string `json:"orderId"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Revision counts the changes of one order's state, its creation included, so that a reader can see that none is
	// missing.
	Revision int64 `json:"revision"`
}

// LineItemStateChangedV1 is the payload of [LineItemStateChanged].
type LineItemStateChangedV1 struct {
	OrderID    string `json:"orderId"`
	LineItemID string `json:"lineItemId"`
	From       string `json:"from"`
	To         string `json:"to"`
}

// OrderEndedV1 is the payload of [OrderExpired] and [OrderCanceled].
type OrderEndedV1 struct {
	OrderID  string `json:"orderId"`
	Reason   string `json:"reason,omitempty"`
	Revision int64  `json:"revision"`
}

// ReservationReleasedV1 is the payload of [ReservationReleased].
type ReservationReleasedV1 struct {
	OrderID   string `json:"orderId"`
	ProductID string `json:"productId"`
	Quantity  int    `json:"quantity"`
}
