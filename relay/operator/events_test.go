package operator_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// knows adds a relay that is alive and knows types and their topics.
func (e *env) knows(name string, topics map[string]string) (relay string) {
	e.t.Helper()
	relay = e.one(`WITH r AS (INSERT INTO {schema}.outbox_relays (id, token, name)
			VALUES (gen_random_uuid(), gen_random_uuid(), $1) RETURNING id),
		b AS (INSERT INTO {schema}.outbox_beats (relay, number, until)
			SELECT id, 1, clock_timestamp() + interval '1 hour' FROM r)
		SELECT id::text FROM r`, name)
	for eventType, topic := range topics {
		e.exec("INSERT INTO {schema}.outbox_known (relay, event_type, topic) VALUES ($1::text::uuid, $2, $3)", relay,
			eventType, topic)
	}
	return relay
}

// idAt is an id that was made at a moment.
func idAt(at time.Time) outbox.ID {
	id := outbox.NewID()
	milliseconds := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))
	copy(id[:6], milliseconds[2:])
	return id
}

// search is what a filter finds, by the names of the events, newest first.
func (e *env) search(op *operator.Operator, names map[outbox.ID]string, text string, page operator.Page,
) (string, operator.EventPage) {
	e.t.Helper()
	filter, err := operator.ParseFilter(text)
	if err != nil {
		e.t.Fatal(err)
	}
	found, err := op.Events(e.t.Context(), filter, page)
	if err != nil {
		e.t.Fatalf("%s: %v", text, err)
	}
	var list []string
	for _, event := range found.Events {
		list = append(list, names[event.ID])
	}
	return strings.Join(list, " "), found
}

// TestEventsByEveryField: each field finds what it names, whichever way it is looked for, and so does a viewer.
func TestEventsByEveryField(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		names := map[outbox.ID]string{}
		ids := map[string]outbox.ID{}
		for _, is := range state.All() {
			id := e.event("4711", "order_"+strings.ReplaceAll(is.String(), " ", "_"), is)
			name := strings.ReplaceAll(is.String(), " ", "_")
			names[id], ids[name] = name, id
		}
		other := idAt(time.Now().Add(-3 * time.Hour))
		e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, tenant_id, namespace,
			created_at, payload_json, headers, dedupe_key)
			VALUES ($1::text::uuid, 'order_ready', 'cart', 'c/1', 'acme', 'billing', now() - interval '3 hours',
			json_build_object('eventId', $1::text, 'data', json_build_object('customer', json_build_object('id', 77))),
			'{"a":"b"}', 'acme/k')`, other.String())
		names[other], ids["other"] = "other", other
		e.knows("first", map[string]string{"order_ready": "orders", "order_dead": "orders", "order_parked": "elsewhere"})
		owner := operator.New(e.admin, e.schema)
		for text, want := range map[string]string{
			"":                 "discarded published dead dead_and_blocking waiting parked retrying ready other",
			"type:order_ready": "ready other", "type:order_ready,order_dead": "dead ready other",
			"type:order_ready aggregate:order":          "ready",
			"aggregate:order/4711 state:waiting":        "waiting",
			"aggregate:cart/c/1":                        "other",
			"aggregate:cart":                            "other",
			"tenant:acme":                               "other",
			"namespace:billing":                         "other",
			"topic:orders":                              "dead ready other",
			"state:dead":                                "dead dead_and_blocking",
			"state:held":                                "dead_and_blocking waiting parked retrying",
			"state:ready":                               "ready other",
			"state:published,dead":                      "published dead dead_and_blocking",
			"error:BROK state:parked":                   "parked",
			"attempts:>2 state:open":                    "dead dead_and_blocking waiting parked retrying ready",
			"attempts:0":                                "other",
			"created:>2h":                               "other",
			"created:<2h state:ready":                   "ready",
			"published:<1h":                             "published",
			"published:>1h":                             "",
			"id:" + other.String():                      "other",
			ids["dead"].String() + " " + other.String(): "dead other",
			"tenant:nobody":                             "",
			"id:00000000-0000-7000-8000-000000000000":   "",
			"created:2020-01-01..2020-02-01 state:open": "",
			"aggregate:order/4711 type:order_ready id:" + ids["ready"].String(): "ready",
		} {
			for _, op := range []*operator.Operator{e.operator, owner} {
				got, page := e.search(op, names, text, operator.Page{})
				if got != want || !page.Window.Complete || page.Next != "" {
					t.Errorf("%s: got %q, %+v\nwant %q", text, got, page.Window, want)
				}
			}
		}
		if got, _ := e.search(owner, names, "data.customer.id:77", operator.Page{}); got != "other" {
			t.Errorf("by the payload: %q", got)
		}
		_, page := e.search(owner, names, "tenant:acme", operator.Page{Payloads: true})
		if found := page.Events[0]; !strings.Contains(string(found.Payload), `"customer"`) || string(found.Headers) !=
			`{"a":"b"}` || found.DedupeKey != "acme/k" || found.Topic != "orders" || found.State != "ready" {
			t.Errorf("got %+v", page.Events[0])
		}
		for _, c := range []struct {
			filter operator.Filter
			page   operator.Page
			want   string
		}{
			{
				operator.Filter{Data: []operator.DataValue{{Path: []string{"a"}, Value: "b"}}},
				operator.Page{},
				"may not read payloads",
			},
			{operator.Filter{}, operator.Page{Payloads: true}, "may not read payloads"},
			{operator.Filter{Topic: "order"}, operator.Page{}, `publishes to "order"; they know elsewhere, orders`},
			{operator.Filter{}, operator.Page{Limit: 1001}, "between 1 and 1000"},
			{operator.Filter{}, operator.Page{After: "nowhere"}, "is no place"},
			{operator.Filter{}, operator.Page{After: "seq.7"}, "begin anew"},
			{operator.Filter{States: []string{"x"}}, operator.Page{}, "no state"},
			{operator.Filter{AggregateID: "x"}, operator.Page{}, "needs its AggregateType"},
		} {
			if _, err := e.operator.Events(t.Context(), c.filter, c.page); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, want %q", c, err, c.want)
			}
		}
	})
}

// TestEventsPageByPage: pages join without a gap, whichever way they are looked for, and a search without an index says
// how far it looked.
func TestEventsPageByPage(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		names := map[outbox.ID]string{}
		var all []string
		for i := range 20 {
			is := state.Published
			if i%4 == 0 {
				is = state.Dead
			}
			id := e.event("1", "order_created", is)
			names[id] = fmt.Sprint(i)
			all = append([]string{fmt.Sprint(i)}, all...)
		}
		e.operator.SetWindow(8)
		collect := func(text string) (found string, pages int) {
			var list []string
			for page := (operator.Page{Limit: 3}); ; {
				got, answer := e.search(e.operator, names, text, page)
				list = append(list, strings.Fields(got)...)
				if pages++; answer.Next == "" || pages > 50 {
					return strings.Join(list, " "), pages
				}
				page.After = answer.Next
			}
		}
		everything := strings.Join(all, " ")
		for text, want := range map[string]string{
			"": everything, "type:order_created": everything, "aggregate:order/1": everything, "state:dead": "16 12 8 4 0",
			"error:broken": everything, "state:dead error:broken type:order_created": "16 12 8 4 0",
			"state:dead,published error:broken": everything,
		} {
			if got, _ := collect(text); got != want {
				t.Errorf("%s: got %s\nwant %s", text, got, want)
			}
		}
		// Nobody has it: the window is what can be said.
		_, page := e.search(e.operator, names, "tenant:nobody", operator.Page{})
		if w := page.Window; w.By != "newest" || w.Looked != 8 || w.Complete || w.Since == nil ||
			time.Since(*w.Since) > time.Hour || page.Next == "" {
			t.Errorf("got %+v", page)
		}
		if got, pages := collect("tenant:nobody"); got != "" || pages != 3 {
			t.Errorf("got %q on %d pages", got, pages)
		}
		// With the optional index a rare type is found wherever it is.
		e.exec("CREATE INDEX outbox_events_event_type ON {schema}.outbox_events (event_type, seq)")
		if got, _ := collect("type:order_created"); got != everything {
			t.Errorf("by the index: %s", got)
		}
		if _, page := e.search(e.operator, names, "type:order_created", operator.Page{}); page.Window.By != "type" {
			t.Errorf("the index is not used: %+v", page.Window)
		}
		_, page = e.search(e.operator, names, "type:order_created tenant:nobody", operator.Page{})
		if page.Window.Looked != 8 || page.Next == "" {
			t.Errorf("got %+v", page)
		}
		// What was published within an hour is looked for among the ids of a day before that: older ones are left.
		e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
			VALUES ($1::text::uuid, 'order_created', 'order', '1', json_build_object('eventId', $1::text, 'data', 1))`,
			idAt(time.Now().Add(-72*time.Hour)).String())
		page.Next = ""
		for more := true; more; more = page.Next != "" {
			_, page = e.search(e.operator, names, "published:<1h tenant:nobody", operator.Page{After: page.Next})
		}
		if page.Window.Complete || page.Window.Since == nil {
			t.Errorf("got %+v", page)
		}
	})
}
