package events

import "github.com/posthaste-dev/posthaste/outbox"

// PaymentSettled says that the buyer's payment arrived.
var PaymentSettled = outbox.Define[LedgerEntryV1](outbox.Contract{
	Type: "payment_settled", Version: 1, Aggregate: LedgerEvent, Topic: billingTopic,
})

// CashCollected says that an agent took cash at the door.
var CashCollected = outbox.Define[LedgerEntryV1](outbox.Contract{
	Type: "cash_collected", Version: 1, Aggregate: LedgerEvent, Topic: billingTopic,
})

// VendorPayoutRecorded says that the vendor was paid.
var VendorPayoutRecorded = outbox.Define[LedgerEntryV1](outbox.Contract{
	Type: "vendor_payout_recorded", Version: 1, Aggregate: LedgerEvent, Topic: billingTopic,
})

// LedgerEntryV1 is the payload of the three. Amounts are in the currency's smallest unit.
type LedgerEntryV1 struct {
	LedgerEventID string `json:"ledgerEventId"`
	OrderID       string `json:"orderId"`
	Currency      string `json:"currency"`
	AmountCents   int64  `json:"amountCents"`
}
