package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestTopicsScreen: what fails, what people have paused and limited, and what each topic carries.
func TestTopicsScreen(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.shows(viewer, "topics", "No relay has said yet where it publishes to.")
		relay := e.joins("relay-a", "1 hour", 1, 64)
		e.knows(relay, "order_created", "orders")
		e.knows(relay, "mail", "mails <b>")
		e.knows(relay, "bill", "bills")
		e.fails(relay, "orders", "broker: <i>no such topic</i>")
		e.writesDown("orders", 600, 300)
		for _, scope := range []operator.Scope{operator.TopicScope("bills"), operator.TypeScope("mail")} {
			e.exec("INSERT INTO {schema}.outbox_pauses (scope, name, actor, reason) VALUES ($1, $2, 'ann', 'it moves')",
				scope.Kind, scope.Name)
		}
		body := e.shows(viewer, "topics", "orders", "failing", "broker: <i>no such topic</i>", "relay-a", "Of 3 topics",
			"by ann", "it moves", "mails <b>", "10", "5.0")
		e.hides(body, "<b>", "/order/", "Verbs")
		body = e.shows(viewer, "topics?topic=orders", "All topics", "order_created", "1 alive", "Events per second",
			"type%3Aorder_created")
		e.hides(body, "/order/", "mails")
		e.shows(viewer, "topics?topic=other", "No relay that is there knows the topic", "other", "mails")
		e.shows(operates, "topics", "/order/pause?name=orders&scope=topic", "/order/resume?name=bills&scope=topic",
			"/order/pause?scope=all")
		e.shows(operates, "topics?topic=mails+%3Cb%3E", "/order/resume?name=mail&scope=type")
		e.isForbidden("topics", tenants)
		e.isForbidden("order/pause?scope=all", viewer, tenants)
	})
}

// TestOrders: each verb says what it will do, does it once, and says what came of it in words of our own.
func TestOrders(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.knows(e.joins("relay-a", "1 hour", 1, 64), "order_created", "orders")
		for _, step := range []struct {
			verb, scope, name, rate, leads, stands string
		}{
			{"pause", "topic", "orders", "", "pause-done&topic=orders", "topic orders"},
			{"pause", "topic", "orders", "", "pause-not-applicable&topic=orders", "topic orders"},
			{"pause", "type", "order_created", "", "pause-done", "type order_created"},
			{"pause", "all", "", "", "pause-done", "all "},
			{"resume", "all", "", "", "resume-done", "-"},
			{"resume", "topic", "orders", "", "resume-done&topic=orders", "-"},
			{"resume", "topic", "orders", "", "resume-not-applicable&topic=orders", "-"},
			{"limit", "topic", "orders", "2.5", "limit-done&topic=orders", "-"},
			{"unlimit", "topic", "orders", "", "unlimit-done&topic=orders", "-"},
			{"unlimit", "topic", "orders", "", "unlimit-not-applicable&topic=orders", "-"},
		} {
			form := []string{
				"scope", step.scope, "name", step.name, "rate", step.rate, "reason", "it moves",
				"action", outbox.NewID().String(),
			}
			e.shows(operates, "order/"+step.verb+"?scope="+step.scope+"&name="+step.name, "within about a second")
			status, body, location := e.posts(operates, "order/"+step.verb, form...)
			if status != http.StatusSeeOther || location != "topics?did="+step.leads {
				t.Fatalf("%+v: status %d to %s: %s", step, status, location, body)
			}
			e.shows(operates, location, `role="status">`)
			if step.stands != "-" && e.one(`SELECT count(*)::text FROM {schema}.outbox_pauses
				WHERE scope || ' ' || name = $1 AND actor = 'olga'`, step.stands) != "1" {
				t.Errorf("%+v is not there", step)
			}
			if status, _, _ = e.posts(viewer, "order/"+step.verb, form...); status != http.StatusForbidden {
				t.Errorf("%+v by a viewer: status %d", step, status)
			}
		}
		if left := e.one("SELECT count(*)::text FROM {schema}.outbox_limits"); left != "0" {
			t.Errorf("%s limits are left", left)
		}
	})
}

// TestOrdersNotUnderstood: what is mistyped changes nothing, and a form that lacks something is shown again.
func TestOrdersNotUnderstood(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := outbox.NewID().String()
		for _, form := range [][]string{
			{"pause", "scope", "everything"},
			{"pause", "scope", "restored"},
			{"resume", "scope", "restored"},
			{"pause", "scope", "all", "name", "orders"},
			{"pause", "scope", "topic"},
			{"pause", "scope", "topic", "name", "a\nb"},
			{"limit", "scope", "type", "name", "mail", "rate", "1"},
			{"limit", "scope", "topic", "name", "mails", "rate", "NaN"},
			{"limit", "scope", "topic", "name", "mails", "rate", "0"},
			{"limit", "scope", "topic", "name", "mails"},
			{"pause", "scope", "all", "action", "x"},
			{"pause", "scope", "all", "reason", " "},
		} {
			status, body, _ := e.posts(operates, "order/"+form[0], append(form[1:], "action", id, "reason", "it moves")...)
			if status != http.StatusBadRequest {
				t.Errorf("%q: status %d: %s", form, status, body)
			}
		}
		status, body, _ := e.posts(operates, "order/limit", "action", id, "scope", "topic", "name", "mails",
			"rate", "fast", "reason", "it moves")
		for _, kept := range []string{"A limit is a number", `value="fast"`, `value="it moves"`, id} {
			if !strings.Contains(body, kept) {
				t.Errorf("the form has no %q: %s", kept, body)
			}
		}
		if got := e.one(`SELECT (SELECT count(*) FROM {schema}.outbox_actions)::text ||
			(SELECT count(*) FROM {schema}.outbox_pauses)`); got != "00" || status != http.StatusBadRequest {
			t.Errorf("got %s, status %d", got, status)
		}
		// An address brings no text onto the page.
		body = e.shows(operates, "topics?did=you+were+hacked")
		e.hides(body, "hacked</p>")
	})
}
