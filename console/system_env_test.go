package console_test

import (
	"html"
	"net/http"
	"strings"

	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/outbox"
)

var (
	admin   = access.User{Name: "ada", Role: access.Admin}
	tenants = access.User{Name: "tom", Role: access.Admin, Tenants: []string{"acme"}}
)

// joins adds a relay with lanes from first to last that is alive for so long, and returns its id.
func (e *env) joins(name, alive string, first, last int) string {
	e.t.Helper()
	id := outbox.NewID().String()
	e.exec(`INSERT INTO {schema}.outbox_relays (id, token, name, version, lanes)
		VALUES ($1::text::uuid, gen_random_uuid(), $2, 'v1', ARRAY(SELECT generate_series($3::int, $4::int))::smallint[])`,
		id, name, first, last)
	e.exec(`INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors, swept, recovered)
		VALUES ($1::text::uuid, 1, clock_timestamp() + $2::text::interval, ARRAY[$3]::smallint[], '{7}', '{0}', '{t}')`,
		id, alive, first)
	e.exec(`UPDATE {schema}.outbox_lanes SET owner = $1::text::uuid, token = gen_random_uuid(),
		acquired_at = clock_timestamp() WHERE lane BETWEEN $2 AND $3`, id, first, last)
	return id
}

// knows has a relay send a type to a topic.
func (e *env) knows(relay, eventType, topic string) {
	e.t.Helper()
	e.exec("INSERT INTO {schema}.outbox_known VALUES ($1::text::uuid, $2, $3)", relay, eventType, topic)
}

// fails has a relay pause a topic.
func (e *env) fails(relay, topic, why string) {
	e.t.Helper()
	e.exec("INSERT INTO {schema}.outbox_topics (relay, topic, paused, error) VALUES ($1::text::uuid, $2, true, $3)",
		relay, topic, why)
}

// writesDown tells what came and went by a topic in each minute: in those to come as well, so that no test depends on
// when one ends.
func (e *env) writesDown(topic string, arrived, published int) {
	e.t.Helper()
	e.exec(`INSERT INTO {schema}.outbox_minutes (minute, topic, relay, arrived, published, died, rejected, terminal,
			topic_fault, unknown, latencies)
		SELECT date_trunc('minute', now()) + n * interval '1 minute', $1, gen_random_uuid(), $2::int, $3::int, 0, 0, 0, 0, 0,
		array_fill(0::bigint, ARRAY[16]) FROM generate_series(-10, 10) n`, topic, arrived, published)
}

// shows opens a page after what was changed, and demands that it has all of these texts.
func (e *env) shows(user access.User, target string, texts ...string) string {
	e.t.Helper()
	e.console.Forget()
	body := e.sees(user, path("%s", target))
	read := html.UnescapeString(body)
	for _, want := range texts {
		if !strings.Contains(read, want) {
			e.t.Errorf("%s does not show %q:\n%s", target, want, body)
		}
	}
	return body
}

// hides demands that a page has none of these.
func (e *env) hides(body string, texts ...string) {
	e.t.Helper()
	for _, unwanted := range texts {
		if strings.Contains(body, unwanted) {
			e.t.Errorf("the page has %q:\n%s", unwanted, body)
		}
	}
}

// posts sends a form, and tells what came and where it leads.
func (e *env) posts(user access.User, target string, pairs ...string) (status int, body, leads string) {
	e.t.Helper()
	got := e.as(user, path("%s", target), form(pairs...))
	return got.status, got.body, strings.TrimPrefix(got.header.Get("Location"), path(""))
}

// isForbidden demands that a page is not for these users.
func (e *env) isForbidden(target string, users ...access.User) {
	e.t.Helper()
	for _, user := range users {
		if got := e.as(user, path("%s", target), nil); got.status != http.StatusForbidden {
			e.t.Errorf("%s for %s: status %d, want 403", target, user.Name, got.status)
		}
	}
}
