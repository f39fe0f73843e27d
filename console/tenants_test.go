package console_test

import (
	"net/url"
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

// TestThePageSaysWhoseItIs: whoever is bound to tenants sees one at a time, is told which, and is led to the others by
// the page that is open.
func TestThePageSaysWhoseItIs(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		one := access.User{Name: "tom", Role: access.Operator, Tenants: []string{"acme"}}
		two := access.User{Name: "tina", Role: access.Operator, Tenants: []string{"acme", "beta"}}
		for tenant, other := range map[string]string{"acme": "beta", "beta": "acme"} {
			id := e.dead(event{aggregate: "1", tenant: tenant, failure: "x"})
			for page, more := range map[string]string{"events": "", "dead": "all", "replay": "verb"} {
				query := func(tenant string) string {
					values := url.Values{"q": {"type:order_created tenant:" + tenant}}
					if more != "" {
						values.Set(more, "redrive") // any text has the box of dead letters checked
					}
					return page + "?" + values.Encode()
				}
				e.shows(two, query(tenant), id.String(), "You see the tenant <strong>"+tenant+"</strong>, one at a time",
					query(other))
			}
		}
		for _, target := range []string{"events", "dead", "replay?verb=redrive"} {
			e.shows(two, target, "You see the tenant <strong>acme</strong>, one at a time")
			e.shows(one, target, "You see the tenant <strong>acme</strong> alone.")
			e.hides(e.shows(operates, target), "You see the tenant")
		}
	})
}
