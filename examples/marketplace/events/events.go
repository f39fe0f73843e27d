// Package events is the marketplace's vocabulary: every event type and aggregate type, each defined
// once, and the closed registry over them. The API emits with these contracts, the publisher relays by
// them, the workers decode with them.
package events

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

// EventTypes is what the marketplace declares; the registry must have exactly these.
var EventTypes = []string{
	"order_created", "order_state_changed", "line_item_state_changed", "order_expired", "order_canceled", "reservation_released",
	"license_status_changed",
	"media_uploaded",
	"payment_settled", "cash_collected", "vendor_payout_recorded",
	"notification_requested",
	"ad_created", "ad_updated", "ad_paused", "ad_activated", "ad_expired", "ad_daily_rollup_ready",
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

// Registry is the closed registry, with the topics as this deployment names them. It fails when a
// declared type has no contract, or the reverse.
func Registry(topics Topics) (*outbox.Registry, error) {
	registry, err := outbox.NewRegistry(
		OrderCreated, OrderStateChanged, LineItemStateChanged, OrderExpired, OrderCanceled, ReservationReleased,
		LicenseStatusChanged,
		MediaUploaded,
		PaymentSettled, CashCollected, VendorPayoutRecorded,
		NotificationRequested,
		AdCreated, AdUpdated, AdPaused, AdActivated, AdExpired, AdDailyRollupReady,
	)
	if err != nil {
		return nil, err
	}
	if err := registry.Covers(EventTypes...); err != nil {
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
