package console

import (
	"net/http"

	"github.com/posthaste-dev/posthaste/console/access"
)

// Scope is how far into an outbox an entry reaches, which matters to users who are bound to tenants.
type Scope string

// The scopes.
const (
	ScopeNone   Scope = "none"   // of no outbox
	ScopeOutbox Scope = "outbox" // of all tenants: who is bound to some may not enter
	ScopeTenant Scope = "tenant" // of many events: who is bound to tenants sees and changes only theirs
	ScopeEvent  Scope = "event"  // of one event or job: another tenant's is not there
)

// An Entry is one way into the console: who may use it, and how far it reaches. There is no other way.
type Entry struct {
	Method, Pattern, Name string
	Role                  access.Role
	// Payloads tells that the user must have the right to read payloads as well.
	Payloads bool
	Scope    Scope
	// Verb is what is decided here. Each verb has a way in of its own, so that a rule can be about one.
	Verb string
}

type entry struct {
	Entry
	handle func(*request) error
}

// by is an entry of the same kind for one verb.
func (e entry) by(verb string) entry {
	e.Pattern += "/" + verb
	e.Verb = verb
	return e
}

// Entries are all of them, for tests and for whoever puts rules of a proxy before them.
func Entries() (all []Entry) {
	for _, e := range entries() {
		all = append(all, e.Entry)
	}
	return all
}

const (
	get  = http.MethodGet
	post = http.MethodPost
)

// entries is the table of all ways in.
func entries() []entry {
	var all []entry
	see := func(name, pattern string, scope Scope, handle func(*request) error) {
		all = append(all, entry{Entry{get, pattern, name, access.Viewer, false, scope, ""}, handle})
	}
	change := func(name, method, pattern string, scope Scope, handle func(*request) error, verbs ...string) {
		e := entry{Entry{method, pattern, name, access.Operator, false, scope, ""}, handle}
		if len(verbs) == 0 {
			all = append(all, e)
		}
		for _, verb := range verbs {
			all = append(all, e.by(verb))
		}
	}
	withPayload := func(name, pattern string, role access.Role, handle func(*request) error) {
		all = append(all, entry{Entry{post, pattern, name, role, true, ScopeEvent, ""}, handle})
	}
	see("outboxes", "/{$}", ScopeNone, (*request).outboxes)
	see("asset", "/assets/{file}", ScopeNone, (*request).asset)
	see("overview", "/o/{outbox}/{$}", ScopeOutbox, (*request).overview)
	see("events", "/o/{outbox}/events", ScopeTenant, (*request).events)
	see("export", "/o/{outbox}/export", ScopeTenant, (*request).export)
	see("event", "/o/{outbox}/events/{id}", ScopeEvent, (*request).event)
	withPayload("payload", "/o/{outbox}/events/{id}", access.Viewer, (*request).payload)
	see("aggregate", "/o/{outbox}/aggregate", ScopeTenant, (*request).aggregate)
	see("dead", "/o/{outbox}/dead", ScopeTenant, (*request).dead)
	see("problems", "/o/{outbox}/problems", ScopeOutbox, (*request).problems)
	for _, v := range verbs {
		change("confirm", get, "/o/{outbox}/act", ScopeTenant, (*request).confirm, v.Name)
		change("act", post, "/o/{outbox}/act", ScopeTenant, (*request).act, v.Name)
	}
	withPayload("edit", "/o/{outbox}/events/{id}/edit", access.Operator, (*request).edit)
	withPayload("reissue", "/o/{outbox}/events/{id}/reissue", access.Operator, (*request).reissue)
	see("jobs", "/o/{outbox}/jobs", ScopeTenant, (*request).jobs)
	see("job", "/o/{outbox}/jobs/{id}", ScopeEvent, (*request).job)
	change("plan", get, "/o/{outbox}/replay", ScopeTenant, (*request).plan)
	change("start", post, "/o/{outbox}/replay", ScopeTenant, (*request).start)
	change("steer", post, "/o/{outbox}/jobs/{id}", ScopeEvent, (*request).steer, verbPause, verbResume, verbCancel)
	return append(all, systemEntries()...)
}
