package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/outbox"
)

// fewestEntries is how many ways in there must be, so that the walk tests something.
const fewestEntries = 49

// walk goes to every entry as everybody.
type walk struct {
	*env
	event, job outbox.ID
	cells      int
	gaps       []string
}

// secret is in everything of the tenant that others must not see.
const secret = "only-acme-knows"

// TestEveryWayInIsGuarded: every entry, as every role, with and without the right to read payloads, bound to the tenant
// of what is asked for, to another one, and to none. The table of entries says what is expected. An entry for which
// this test has no parameters fails it.
func TestEveryWayInIsGuarded(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		w := &walk{env: e}
		w.event = e.dead(event{aggregate: secret, tenant: "acme", failure: secret})
		e.exec(`UPDATE {schema}.outbox_held SET aggregate_id = $1`, secret)
		w.job = w.startJob()
		tried := map[string]bool{}
		roles := []access.Role{0, access.Viewer, access.Operator, access.Admin}
		for _, entry := range console.Entries() {
			for _, role := range roles {
				for _, tenants := range [][]string{nil, {"acme"}, {"other"}} {
					for _, payloads := range []bool{false, true} {
						w.try(entry, access.User{Name: "uma", Role: role, Payloads: payloads, Tenants: tenants})
					}
				}
			}
			tried[entry.Method+" "+entry.Pattern] = true
		}
		for _, gap := range w.gaps {
			t.Error(gap)
		}
		t.Logf("console_walk routes=%d roles=%d cells=%d gaps=%d", len(tried), len(roles), w.cells, len(w.gaps))
		if len(tried) < fewestEntries {
			t.Errorf("%d entries were tried, wanted %d", len(tried), fewestEntries)
		}
	})
}

func (w *walk) startJob() outbox.ID {
	id := outbox.NewID()
	w.exec(`INSERT INTO {schema}.outbox_jobs (id, verb, filter, most, expected, actor, reason, last_seq)
		VALUES ($1, 'redrive', 'tenant:acme', 100, 1, 'olga', $2, 1)`, id.String(), secret)
	return id
}

// try makes one request, and compares what came with what the table says.
func (w *walk) try(entry console.Entry, user access.User) {
	w.t.Helper()
	query, body, known := w.parameters(entry)
	if !known {
		w.gaps = append(w.gaps, fmt.Sprintf("the walk has no parameters for %s %s", entry.Method, entry.Pattern))
		return
	}
	target := strings.NewReplacer("{outbox}", "shop", "{$}", "", "{file}", "console.css", "{id}", w.idFor(entry)).
		Replace(entry.Pattern)
	if query != "" {
		target += "?" + query
	}
	if entry.Method == http.MethodGet {
		body = nil
	}
	as := user
	if user.Role == 0 {
		as = access.User{}
	}
	got := w.as(as, target, body)
	w.cells++
	cell := fmt.Sprintf("%s %s as %v, payloads %v, tenants %v", entry.Method, entry.Pattern, user.Role, user.Payloads,
		user.Tenants)
	if want := expected(entry, user); !slices.Contains(want, got.status) {
		w.gaps = append(w.gaps, fmt.Sprintf("%s: %d, wanted one of %v: %s", cell, got.status, want, text(got.body)))
	}
	foreign := user.Role == 0 || slices.Equal(user.Tenants, []string{"other"})
	if foreign && strings.Contains(got.body, secret) {
		w.gaps = append(w.gaps, cell+": it shows what is another tenant's: "+text(got.body))
	}
}

// expected is what the table of entries says of a request for something of the tenant acme.
func expected(entry console.Entry, user access.User) []int {
	foreign := slices.Equal(user.Tenants, []string{"other"})
	switch {
	case user.Role == 0:
		return []int{http.StatusUnauthorized}
	case user.Role < entry.Role, entry.Payloads && !user.Payloads,
		entry.Scope == console.ScopeOutbox && len(user.Tenants) > 0:
		return []int{http.StatusForbidden}
	case foreign && entry.Scope == console.ScopeEvent:
		return []int{http.StatusNotFound}
	case foreign && entry.Scope == console.ScopeTenant: // lists are empty, what is named is not there
		return []int{http.StatusOK, http.StatusNotFound}
	default:
		return []int{http.StatusOK, http.StatusSeeOther}
	}
}

func (w *walk) idFor(entry console.Entry) string {
	if strings.Contains(entry.Pattern, "/jobs/") {
		return w.job.String()
	}
	return w.event.String()
}

// parameters are what a request for the tenant's event, job or aggregate brings: a query, and a form.
func (w *walk) parameters(entry console.Entry) (query string, body url.Values, known bool) {
	reason := []string{"reason", "the walk"}
	switch entry.Name {
	case "outboxes", "asset", "overview", "event", "problems", "jobs", "job", "payload", "edit":
		return "", form(reason...), true
	case "events", "dead":
		return "q=tenant%3Aacme", nil, true
	case "export":
		return "format=csv&q=tenant%3Aacme", nil, true
	case "aggregate":
		return "type=order&id=" + secret, nil, true
	case "confirm":
		return "id=" + w.event.String(), nil, true
	case "act":
		return "", form(append(reason, "id", w.event.String())...), true
	case "reissue":
		return "", form(append(reason, "data", `{}`)...), true
	case "plan":
		return "verb=redrive&q=tenant%3Aacme", nil, true
	case "start":
		return "", form(append(reason, "verb", "redrive", "q", "tenant:acme", "expected", "1", "last_seq", "1", "last_at",
			"2030-01-01T00:00:00Z")...), true
	case "steer":
		return "", form(reason...), true
	default:
		return w.systemParameters(entry)
	}
}
