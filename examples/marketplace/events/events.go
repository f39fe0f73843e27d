// Package events is the marketplace's vocabulary: every event type and aggregate type, each defined
// once, and the closed registry over them. The API emits with these contracts, the publisher relays by
// them, the workers decode with them.
package events

//go:generate go run ./write-registry ../../registry.yaml

import "github.com/posthaste-dev/posthaste/outbox"

// The aggregate types. Checkout groups and stores have no events of their own yet.
const (
	VendorOrder   = "vendor_order"
	CheckoutGroup = "checkout_group"
	License       = "license"
	Store         = "store"
	Media         = "media"
	LedgerEvent   = "ledger_event"
	Notification  = "notification"
	Ad            = "ad"
)

// AggregateTypes lists them all, for a database that shall refuse others.
var AggregateTypes = []string{VendorOrder, CheckoutGroup, License, Store, Media, LedgerEvent, Notification, Ad}

// Contracts are all of them, in the order of examples/registry.yaml, which is made of this list: after a change run
// `go generate ./examples/marketplace/events`. A test finds one that is defined and not here.
var Contracts = []outbox.AnyContract{
	OrderCreated, OrderStateChanged, LineItemStateChanged, OrderExpired, OrderCanceled, ReservationReleased,
	LicenseStatusChanged,
	MediaUploaded,
	PaymentSettled, CashCollected, VendorPayoutRecorded,
	NotificationRequested,
	AdCreated, AdUpdated, AdPaused, AdActivated, AdExpired, AdDailyRollupReady,
}

// EventTypes are the types of the contracts, which are where their names are written.
var EventTypes = typesOf(Contracts)

func typesOf(contracts []outbox.AnyContract) []string {
	types := make([]string, len(contracts))
	for i, contract := range contracts {
		types[i] = contract.Contract().Type
	}
	return types
}

// The topics as contracts name them; [Topics] says what a deployment calls them.
const (
	domainTopic        = "domain"
	analyticsTopic     = "analytics"
	notificationsTopic = "notifications"
	billingTopic       = "billing"
)

// Topics are the names of the topics in one deployment. The zero value has the defaults.
type Topics struct {
	Domain        string // defaults to "pf-domain-events"
	Analytics     string // defaults to "analytics"
	Notifications string // defaults to "notifications"
	Billing       string // defaults to "billing"
}

// Registry is the closed registry, with the topics as this deployment names them.
func Registry(topics Topics) (*outbox.Registry, error) {
	registry, err := outbox.NewRegistry(Contracts...)
	if err != nil {
		return nil, err
	}
	return registry.WithTopics(map[string]string{
		domainTopic:        or(topics.Domain, "pf-domain-events"),
		analyticsTopic:     or(topics.Analytics, analyticsTopic),
		notificationsTopic: or(topics.Notifications, notificationsTopic),
		billingTopic:       or(topics.Billing, billingTopic),
	})
}

func or(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}
