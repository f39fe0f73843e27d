package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/internal/serverstest"
)

// kept is in the payload of a dead letter, and broken what its contract was broken with.
const (
	kept   = "12345678901234567890"
	broken = "at '/total': must be below 1000"
)

// withAll is an event that died, with all that only they see who may.
func withAll(tenant string) event {
	return event{aggregate: "4711", tenant: tenant, headers: `{"origin":"the till"}`, failure: broken}
}

// TestALetterThatIsLeftIsShown: retention has deleted its event, and its page is there all the same, with what happened
// to it. The payload is for who may read one, with what breaks the contract marked and the look in the log.
func TestALetterThatIsLeftIsShown(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.left(withAll(""))
		target := "events/" + id.String()
		e.sees(viewer, path("dead?all=1"), path("%s", target))
		body := e.shows(viewer, target, ">deleted<", "order/4711", broken, "died: max attempts", "discard by olga",
			"Its dead letter is left", "it died", "outbox_dlq WHERE event_id", "You may not read payloads")
		e.hides(body, kept, "the till", "never here", "/act/", "Before it", "lane 0", "Erase")
		if got := e.as(viewer, path("%s", target), form()); got.status != http.StatusForbidden || e.looks(id) != "nobody" {
			t.Errorf("a viewer gets %d for its payload, and the log has %s", got.status, e.looks(id))
		}
		e.hides(e.shows(operates, target, "Show the payload"), kept, "the till", "/act/")
		if e.looks(id) != "nobody" {
			t.Errorf("nobody has looked, and the log has %s", e.looks(id))
		}
		body = e.does(operates, path("%s", target)).body
		for _, want := range []string{kept, "<mark>", "the till", "That you looked is in the log"} {
			if !strings.Contains(body, want) {
				t.Errorf("the payload is shown without %q: %s", want, text(body))
			}
		}
		e.hides(body, "/edit", "/act/")
		for _, verb := range []string{"/edit", "/reissue"} {
			got := e.as(operates, path("%s", target+verb), form("reason", "x", "data", "{}"))
			if got.status != http.StatusNotFound || strings.Contains(got.body, kept) {
				t.Errorf("%s: %d %s", verb, got.status, text(got.body))
			}
		}
		if e.looks(id) != "olga" {
			t.Errorf("olga has looked once, and the log has %s", e.looks(id))
		}
		e.shows(viewer, target, "look by olga")
	})
}

// TestALetterThatIsLeftIsMasked as the payload of an event is.
func TestALetterThatIsLeftIsMasked(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.left(withAll(""))
		e.serve("/data/total")
		body := e.does(operates, path("events/%s", id)).body
		e.hides(body, kept)
		if !strings.Contains(body, "masked") || !strings.Contains(body, "the till") || e.looks(id) != "olga" {
			t.Errorf("%s, and the log has %s", text(body), e.looks(id))
		}
	})
}

// TestALetterThatIsLeftNeedsTheReader: what the console's role may not read nobody is shown.
func TestALetterThatIsLeftNeedsTheReader(t *testing.T) {
	t.Parallel()
	serverstest.OnEach(t, func(t *testing.T, address string) {
		e := newEnv(t, address, "operator")
		id := e.left(withAll(""))
		e.shows(operates, "events/"+id.String(), "Its dead letter is left")
		got := e.as(operates, path("events/%s", id), form())
		if got.status != http.StatusForbidden || !strings.Contains(got.body, "outboxctl grant reader") ||
			strings.Contains(got.body, kept) || e.looks(id) != "nobody" {
			t.Errorf("%d, and the log has %s: %s", got.status, e.looks(id), text(got.body))
		}
	})
}

// TestALetterThatIsLeftHasItsTenant: another's is not there, and neither is one of which it could be another's.
func TestALetterThatIsLeftHasItsTenant(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		bound := access.User{Name: "tom", Role: access.Operator, Payloads: true, Tenants: []string{"acme"}}
		own, theirs, nobodys, twice := e.left(withAll("acme")), e.left(withAll("other")), e.left(withAll("")),
			e.left(withAll("acme"))
		e.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id,
				event_type, aggregate_type, aggregate_id, error_reason, payload_json)
			SELECT event_seq, $1::text::uuid, created_at, 3, true, namespace, tenant_id, event_type, aggregate_type,
				aggregate_id, error_reason, payload_json FROM {schema}.outbox_dlq WHERE event_id = $2::text::uuid`,
			twice.String(), theirs.String())
		e.exec(`UPDATE {schema}.outbox_retention SET deleted = 123456, cut_off = clock_timestamp() + interval '1 hour',
			ran_at = clock_timestamp() WHERE kind = 'published'`)
		e.shows(admin, "events/"+own.String(), "it has deleted 123456 events")
		e.hides(e.shows(bound, "events/"+own.String(), "Its dead letter is left", "Tenant", "it has deleted events up to"),
			"123456")
		if body := e.does(bound, path("events/%s", own)).body; !strings.Contains(body, kept) || e.looks(own) != "tom" {
			t.Errorf("its own: %s, and the log has %s", text(body), e.looks(own))
		}
		for name, id := range map[string]string{
			"another's": theirs.String(), "nobody's": nobodys.String(), "of two": twice.String(),
		} {
			for _, send := range []bool{false, true} {
				sent := form()
				if !send {
					sent = nil
				}
				got := e.as(bound, path("events/%s", id), sent)
				if got.status != http.StatusNotFound || strings.Contains(got.body, kept) ||
					strings.Contains(got.body, "order/4711") {
					t.Errorf("%s, sent %t: %d %s", name, send, got.status, text(got.body))
				}
			}
		}
		if n := e.one(`SELECT count(*)::text FROM {schema}.outbox_actions WHERE verb = 'look'`); n != "1" {
			t.Errorf("the log has %s looks", n)
		}
	})
}

// TestALetterThatIsLeftIsErased by admins, from its page and from a filter of dead letters.
func TestALetterThatIsLeftIsErased(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.left(withAll(""))
		target := "events/" + id.String()
		e.hides(e.shows(operates, "dead?all=1&q=aggregate%3Aorder%2F4711", id.String()), "/erase?")
		e.shows(admin, "dead?all=1&q=aggregate%3Aorder%2F4711", path("erase?q=aggregate"))
		e.hides(e.shows(admin, "dead?all=1&q=reason%3Amax_attempts", id.String()), "/erase?")
		e.shows(admin, target, path("erase?q=id%%3A%s", id))
		fields := hidden(e.sees(admin, path("erase?q=id%%3A%s", id), "to be erased: deleted", "Type 1, the number"))
		fields.Set("reason", "they asked for it")
		fields.Set("typed", "1")
		if got := e.as(admin, path("erase"), fields); got.status != http.StatusOK ||
			!strings.Contains(got.body, "1 event is erased") {
			t.Fatalf("%d: %s", got.status, text(got.body))
		}
		if left := e.one(`SELECT count(*)::text FROM {schema}.outbox_dlq
			WHERE event_id = $1 AND (payload_json::text LIKE '%' || $2 || '%' OR headers IS NOT NULL)`, id.String(),
			kept); left != "0" {
			t.Error("the payload is still there")
		}
		e.hides(e.shows(admin, target, ">erased<", "erase by ada"), "/erase?")
		body := e.does(operates, path("%s", target)).body
		e.hides(body, kept, "the till")
		if !strings.Contains(body, "erased") || e.looks(id) != "olga" {
			t.Errorf("%s, and the log has %s", text(body), e.looks(id))
		}
	})
}
