package events_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
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

// defined reads the event types of all contracts that this package defines from its source.
func defined(t *testing.T) (types []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			field, is := node.(*ast.KeyValueExpr)
			if !is {
				return true
			}
			key, named := field.Key.(*ast.Ident)
			value, literal := field.Value.(*ast.BasicLit)
			if named && literal && key.Name == "Type" && !strings.HasSuffix(name, "_test.go") {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, text)
			}
			return true
		})
	}
	return types
}

// RG-6, EM-10: a name is written once, in its contract; whoever defines one and forgets it in the list is told here.
func TestEveryContractIsInTheRegistry(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	types := defined(t)
	if err := registry.Covers(types...); err != nil {
		t.Error(err)
	}
	if err := registry.Covers(events.EventTypes...); err != nil {
		t.Error(err)
	}
	if len(types) != len(events.EventTypes) || len(types) != len(events.Contracts) {
		t.Errorf("%d contracts are defined, %d listed, %d types", len(types), len(events.Contracts), len(events.EventTypes))
	}
}

func TestTopicNamesComeFromConfiguration(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{Domain: "eu-domain", Billing: "eu-billing"})
	if err != nil {
		t.Fatal(err)
	}
	for eventType, want := range map[string]string{
		"license_status_changed": "eu-domain", "payment_settled": "eu-billing", "ad_created": "analytics",
		"notification_requested": "notifications",
	} {
		if contract, _ := registry.Contract(eventType); contract.Topic != want {
			t.Errorf("%s goes to %s, want %s", eventType, contract.Topic, want)
		}
	}
}

func TestContractsRejectWhatTheirConsumersCannotUse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		event   outbox.Event
		problem string
	}{
		{
			"a licence", events.LicenseStatusChanged.New("l1", events.LicenseStatusChangedV1{
				LicenseID: "l1", StoreID: "s1", Status: events.LicensePending,
			}), "",
		},
		{
			"a licence without store",
			events.LicenseStatusChanged.New("l1", events.LicenseStatusChangedV1{LicenseID: "l1", Status: events.LicensePending}),
			"storeId are required",
		},
		{
			"a licence of unknown status",
			events.LicenseStatusChanged.New("l1", events.LicenseStatusChangedV1{LicenseID: "l1", StoreID: "s1", Status: "lost"}),
			"status must be",
		},
		{
			"an order",
			events.OrderCreated.New("o1", events.OrderCreatedV1{
				OrderID: "o1", VendorStoreID: "s1", Lines: []events.LineItem{{Quantity: 1}},
			}), "",
		},
		{
			"an empty order", events.OrderCreated.New("o1", events.OrderCreatedV1{OrderID: "o1", VendorStoreID: "s1"}),
			"at least one is required",
		},
	} {
		_, err := outbox.Statement("", test.event)
		if test.problem == "" && err != nil ||
			test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.problem)
		}
	}
}
