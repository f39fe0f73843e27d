package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// TestTypesScreen: what relays know beside what was emitted, and how far back was looked.
func TestTypesScreen(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.shows(viewer, "types", "No relay knows a type yet")
		relay := e.joins("relay-a", "1 hour", 1, 64)
		e.knows(relay, "order_created", "orders")
		e.knows(relay, "never_emitted", "others <b>")
		e.knows(e.joins("relay-b", "-1 hour", 1, 1), "of_a_dead_relay", "orders")
		e.emit(event{aggregate: "1"})
		e.shows(viewer, "types", "Relays know every type that was seen.", "looked at, 1 of them", "not seen",
			"no relay alive knows it", "topics?topic=orders", "compares with what relays know")
		e.emit(event{aggregate: "1", kind: "who_knows"})
		e.dead(event{aggregate: "1", kind: "order_created"})
		body := e.shows(viewer, "types", "1 type was emitted that no relay knows", "who_knows",
			"state%3Aheld+type%3Aorder_created", "looked at, 3 of them")
		e.hides(body, "<b>")
		if strings.Count(body, ">unknown<") != 1 || strings.Index(body, "who_") > strings.Index(body, "never_emitted") {
			t.Errorf("the unknown one is not first: %s", body)
		}
		e.isForbidden("types", tenants)
	})
}

// TestTypesBesideARegistry: what the registry does not have is unknown, whether or not a relay knows it.
func TestTypesBesideARegistry(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		var err error
		e.console, err = console.New(console.Config{Outboxes: []console.Outbox{{
			Name: "shop", DB: e.admin, Schema: e.schema, Registry: &contracts.Document{Contracts: []contracts.Contract{
				{Type: "order_created", Version: 3, Aggregate: "order", Topic: "orders", Schema: json.RawMessage(`{}`)},
				{Type: "order_paid", Version: 1, Aggregate: "order", Topic: "orders"},
			}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		e.emit(event{aggregate: "1"})
		e.shows(viewer, "types", "The registry has every type that was seen.", "order_paid",
			"no relay sends it", "yes", "none")
		e.knows(e.joins("relay-a", "1 hour", 1, 64), "mail", "mails")
		e.emit(event{aggregate: "1", kind: "mail"})
		e.shows(viewer, "types", "1 type was emitted that the registry does not have", "unknown", "mails")
	})
}
