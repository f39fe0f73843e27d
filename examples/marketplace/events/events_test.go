package events_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

func TestRegistryIsCompleteAndClosed(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	if len(registry.Types()) != 18 || len(events.AggregateTypes) != 8 {
		t.Errorf("%d event types and %d aggregate types, want 18 and 8", len(registry.Types()), len(events.AggregateTypes))
	}
	topics := map[string]int{}
	for _, eventType := range registry.Types() {
		contract, _ := registry.Contract(eventType)
		topics[contract.Topic]++
		if !slices.Contains(events.AggregateTypes, contract.Aggregate) {
			t.Errorf("%s is about %s, which is not declared", eventType, contract.Aggregate)
		}
	}
	for topic, want := range map[string]int{"pf-domain-events": 8, "analytics": 6, "billing": 3, "notifications": 1} {
		if topics[topic] != want {
			t.Errorf("%d types go to %s, want %d", topics[topic], topic, want)
		}
	}
}

func TestTopicNamesComeFromConfiguration(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{Domain: "eu-domain", Billing: "eu-billing"})
	if err != nil {
		t.Fatal(err)
	}
	for eventType, want := range map[string]string{
		"license_status_changed": "eu-domain", "payment_settled": "eu-billing", "ad_created": "analytics", "notification_requested": "notifications",
	} {
		if contract, _ := registry.Contract(eventType); contract.Topic != want {
			t.Errorf("%s goes to %s, want %s", eventType, contract.Topic, want)
		}
	}
}

func TestContractsRefuseWhatTheirConsumersCannotUse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		event   outbox.Event
		problem string
	}{
		{"a licence", events.LicenseStatusChanged.New("l1", events.LicenseStatusChangedV1{LicenseID: "l1", StoreID: "s1", Status: events.LicensePending}), ""},
		{"a licence without store", events.LicenseStatusChanged.New("l1", events.LicenseStatusChangedV1{LicenseID: "l1", Status: events.LicensePending}), "storeId are required"},
		{"a licence of unknown status", events.LicenseStatusChanged.New("l1", events.LicenseStatusChangedV1{LicenseID: "l1", StoreID: "s1", Status: "lost"}), "status must be"},
		{"an order", events.OrderCreated.New("o1", events.OrderCreatedV1{OrderID: "o1", VendorStoreID: "s1", Lines: []events.LineItem{{Quantity: 1}}}), ""},
		{"an empty order", events.OrderCreated.New("o1", events.OrderCreatedV1{OrderID: "o1", VendorStoreID: "s1"}), "at least one is required"},
	} {
		_, err := outbox.Statement("", test.event)
		if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.problem)
		}
	}
}
