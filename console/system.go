package console

import (
	"html/template"

	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// systemEntries are those of the screens about the system. All of them are about all tenants.
func systemEntries() []entry {
	as := func(role access.Role, method, pattern, name string, handle func(*request) error) entry {
		return entry{Entry{method, "/o/{outbox}/" + pattern, name, role, false, ScopeOutbox, ""}, handle}
	}
	var orders []entry
	for _, verb := range []string{verbPause, verbResume, verbLimit, verbUnlimit} {
		orders = append(orders, as(access.Operator, get, "order", "ordering", (*request).confirmOrder).by(verb),
			as(access.Operator, post, "order", "order", (*request).giveOrder).by(verb))
	}
	return append(orders,
		as(access.Viewer, get, "topics", "topics", (*request).topicsPage),
		as(access.Admin, get, "restored", "restored", (*request).confirmOrder),
		as(access.Admin, post, "restored", "trust", (*request).giveOrder),
		as(access.Admin, get, "erase", "erasure", (*request).confirmErasure),
		as(access.Admin, post, "erase", "erase", (*request).erase),
		as(access.Viewer, get, "relays", "relays", (*request).relaysPage),
		as(access.Viewer, get, "path", "path", (*request).pathPage),
		as(access.Viewer, get, "audit", "audit", (*request).auditPage),
		as(access.Viewer, get, "types", "types", (*request).typesPage),
		as(access.Viewer, get, "database", "database", (*request).databasePage),
	)
}

// systemReads are what was read lately for these screens.
type systemReads struct {
	pauses   latest[[]operator.Pause]
	relays   latest[[]operator.Relay]
	lanes    latest[[]laneLine]
	restored latest[bool]
	writers  latest[[]operator.OpenWriter]
	blocking latest[[]operator.Event]
	jobs     latest[map[outbox.ID]bool]
	types    latest[*operator.EventTypes]
	database latest[*operator.Database]
	grants   latest[[]operator.RoleGrants]
	lookups  latest[[]operator.LookupState]
}

// forgetOrders has the next page read again what an order has changed.
func (s *served) forgetOrders() {
	s.status.forget()
	s.topics.forget()
	s.system.pauses.forget()
	s.system.restored.forget()
}

// systemFunctions are those of their templates.
func systemFunctions() template.FuncMap {
	return template.FuncMap{
		// on hands a template the page beside what it is about.
		"on":   func(p *page, of any) map[string]any { return map[string]any{"Page": p, "Of": of} },
		"term": term,
		// mark is a parameter that is there or not.
		"mark": func(is bool) string { return map[bool]string{true: "1"}[is] },
		"size": sizeOf,
		// ranges writes lanes as people do; more is how many of a list are not shown.
		"ranges": operator.Ranges,
		"more":   func(list []string, shown int) int { return max(len(list)-shown, 0) },
	}
}
