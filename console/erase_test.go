package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// TestEventsAreErased by admins, who count them first and type the number, once however often the form is sent.
func TestEventsAreErased(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		gone := e.dead(event{aggregate: "4711", failure: "no such customer"})
		e.emit(event{aggregate: "4711"}) // it may still be published
		filter := "aggregate:order/4711"
		target := path("erase?%s", url.Values{"q": {filter}}.Encode())
		if got := e.as(operates, target, nil); got.status != http.StatusForbidden {
			t.Errorf("an operator gets %d", got.status)
		}
		if body := e.sees(operates, path("events?q=%s", url.QueryEscape(filter))); strings.Contains(body, "/erase?") {
			t.Error("an operator is shown the button")
		}
		e.sees(admin, path("events?q=%s", url.QueryEscape(filter)), "/o/shop/erase?q=aggregate")
		fields := hidden(e.sees(admin, target, "to be erased: dead", "kept: ready", "Type 1, the number", "Erase 1 event<"))
		left := func() string {
			return e.one(`SELECT count(*)::text FROM {schema}.outbox_events e JOIN {schema}.outbox_dlq d ON d.event_id = e.id
				WHERE e.id = $1 AND e.payload_json::text || d.payload_json::text LIKE '%12345678901234567890%'`, gone.String())
		}
		for missing, status := range map[string]int{"reason": http.StatusBadRequest, "typed": http.StatusBadRequest} {
			form := url.Values{
				"q": {filter}, "action": {outbox.NewID().String()}, "reason": {"they asked for it"}, "typed": {"1"},
				"counted": {fields.Get("counted")},
			}
			form.Set(missing, "")
			if got := e.as(admin, path("erase"), form); got.status != status || left() != "1" {
				t.Errorf("without %s: %d, and %s are left: %s", missing, got.status, left(), text(got.body))
			}
		}
		fields.Set("reason", "they asked for it")
		fields.Set("typed", "1")
		for range 2 {
			if got := e.as(admin, path("erase"), fields); got.status != http.StatusOK ||
				!strings.Contains(got.body, "1 event is erased") {
				t.Errorf("%d: %s", got.status, text(got.body))
			}
		}
		if left() != "0" {
			t.Error("the payload is still there")
		}
		// The form is for what was counted, however often it comes, and whatever meets its filter since.
		later := e.dead(event{aggregate: "4711", failure: "no such customer"})
		whole := func() string {
			return e.one(`SELECT count(*)::text FROM {schema}.outbox_events WHERE id = $1 AND payload_json::text LIKE '%1234%'`,
				later.String())
		}
		if got := e.as(admin, path("erase"), fields); whole() != "1" || !strings.Contains(got.body, "1 event is erased") {
			t.Errorf("%d, and %s are whole: %s", got.status, whole(), text(got.body))
		}
		counted := hidden(e.sees(admin, target, "Erase 1 event<"))
		counted.Set("reason", "again")
		counted.Set("typed", "1")
		e.exec(`DELETE FROM {schema}.outbox_held USING {schema}.outbox_events e WHERE e.id = $1 AND outbox_held.seq = e.seq`,
			later.String())
		e.exec(`UPDATE {schema}.outbox_events SET state = 0 WHERE id = $1`, later.String())
		other := e.dead(event{aggregate: "4711", failure: "no such customer"})
		if got := e.as(admin, path("erase"), counted); got.status != http.StatusBadRequest ||
			!strings.Contains(got.body, "Others meet this filter now") ||
			e.one(`SELECT count(*)::text FROM {schema}.outbox_actions WHERE event_id = $1`, other.String()) != "0" {
			t.Errorf("%d: %s", got.status, text(got.body))
		}
		if who := e.one(`SELECT count(*)::text || min(actor) || min(reason) FROM {schema}.outbox_actions
			WHERE verb = 'erase'`); who != "1adathey asked for it" {
			t.Errorf("the log has %q", who)
		}
		e.sees(admin, path("erase?q=id%%3A%s", gone), "kept: erased before", "none")
	})
}

// TestErasingFromDeadLettersMeansAllEvents: the button and the plan say so, because a filter is all that is passed on.
func TestErasingFromDeadLettersMeansAllEvents(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.dead(event{aggregate: "4711", failure: "no such customer"})
		e.exec(`UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp() WHERE id = $1`,
			e.emit(event{aggregate: "4711"}).String())
		e.shows(admin, "dead?q=aggregate%3Aorder%2F4711", path("erase?q=aggregate"), ">Erase all events of this filter<")
		e.sees(admin, path("erase?q=aggregate%%3Aorder/4711"), "All events of the filter are meant, not only dead letters.",
			"to be erased: published", "to be erased: dead", "Erase 2 events<")
	})
}
