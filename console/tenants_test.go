package console_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/console/access"
)

// TestOthersOfAnAggregateStayUnknown: where tenants share an aggregate, who is bound to one of them learns that their
// event waits behind another tenant's, and nothing about that.
func TestOthersOfAnAggregateStayUnknown(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		bound := access.User{Name: "tom", Role: access.Viewer, Tenants: []string{"acme"}}
		relay := e.joins("relay-a", "1 hour", 1, 64)
		e.knows(relay, "order_created", "orders")
		e.knows(relay, "secret_kind", "orders")
		theirs := e.dead(event{aggregate: "shared", tenant: "other", kind: "secret_kind", failure: secret})
		own := e.emit(event{aggregate: "shared", tenant: "acme"})
		e.shows(viewer, "events/"+own.String(), "secret_kind", theirs.String(), secret)
		for target, says := range map[string]string{
			"events/" + own.String():            "It waits behind an event of its aggregate that is another tenant's.",
			"aggregate?type=order&id=shared":    "Events of it wait behind another tenant's.",
			"events?q=aggregate:order%2Fshared": own.String(),
		} {
			body := e.shows(bound, target, says)
			e.hides(body, "secret_kind", theirs.String(), secret, "Nothing is blocked")
		}
	})
}
