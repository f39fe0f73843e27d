package operator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// checkedRegistry has one type, whose payload needs a field n.
func checkedRegistry(t *testing.T) *outbox.Registry {
	t.Helper()
	registry, err := outbox.NewRegistry(outbox.Define[json.RawMessage](outbox.Contract{
		Type: "order_created", Aggregate: "order", Topic: "orders", Version: 2,
		Validate: func(data json.RawMessage) error {
			if strings.Contains(string(data), "panic") {
				panic(string(data))
			}
			if !strings.Contains(string(data), `"n"`) {
				return errors.New("/n: required")
			}
			return nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// emit writes an event as a producer in SQL does, and puts it into a state.
func (e *env) emit(is state.State, eventType, aggregate, data string, version int) outbox.ID {
	e.t.Helper()
	id, err := outbox.ParseID(e.one(`SELECT id::text FROM {schema}.outbox_emit($1, $2, '1', $3::text::json,
		version => $4)`, eventType, aggregate, data, version))
	if err != nil {
		e.t.Fatal(err)
	}
	e.becomes(id, is)
	return id
}

// told is a report in lines, without the ids.
func toldOf(report *operator.RegistryReport) string {
	lines := []string{fmt.Sprintf("looked=%d complete=%t payloads=%t unpublishable=%d more=%d", report.Looked,
		report.Complete, report.Payloads, report.Unpublishable, report.More)}
	for _, f := range report.Findings {
		line := fmt.Sprintf("%s %s (%s) events=%d states=%v", f.Type, f.Reason, f.Detail, f.Events, f.States)
		if f.Publishable {
			line += " publishable"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestCheckRegistry: each kind of event that cannot be published, in each state in which it waits; and nothing about
// what is published or waits for a person.
func TestCheckRegistry(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		registry := checkedRegistry(t)
		waiting := []state.State{state.Ready, state.Retrying, state.Parked, state.Waiting}
		for _, is := range state.All() {
			e.emit(is, "order_created", "order", `{"n":1}`, 2)
			if !slices.Contains(waiting, is) {
				e.emit(is, "order_lost", "order", `{}`, 2)
			}
		}
		nothing, err := e.operator.CheckRegistry(t.Context(), registry, operator.RegistryCheck{})
		if err != nil || toldOf(nothing) != "looked=4 complete=true payloads=false unpublishable=0 more=0" {
			t.Fatalf("%v: %s", err, toldOf(nothing))
		}
		var unknown []outbox.ID
		for _, is := range waiting {
			unknown = append(unknown, e.emit(is, "order_lost", "order", `{}`, 2))
		}
		e.emit(state.Ready, "order_created", "cart", `{"n":1}`, 2)
		e.emit(state.Waiting, "order_created", "order", `{"m":1}`, 2)
		e.emit(state.Ready, "order_created", "order", `{"n":"panic"}`, 2)
		e.emit(state.Ready, "order_created", "order", `{"n":1}`, 1)

		// By a role that may read no payloads.
		const seen = `order_lost unknown_event_type (the registry has no such type) events=4 ` +
			`states=map[parked:1 ready:1 retrying:1 waiting:1]
order_created aggregate_mismatch (the contract is for aggregate type order) events=1 states=map[ready:1]`
		report, err := e.operator.CheckRegistry(t.Context(), registry, operator.RegistryCheck{})
		if err != nil {
			t.Fatal(err)
		}
		if want := "looked=12 complete=true payloads=false unpublishable=5 more=0\n" + seen; toldOf(report) != want {
			t.Errorf("got\n%s\nwant\n%s", toldOf(report), want)
		}
		if examples := report.Findings[0].Examples; len(examples) != 3 ||
			slices.ContainsFunc(examples, func(id outbox.ID) bool { return !slices.Contains(unknown, id) }) {
			t.Errorf("the examples are %v, and not of %v", examples, unknown)
		}

		// By one that may.
		owner := operator.New(e.admin, e.schema)
		report, err = owner.CheckRegistry(t.Context(), registry, operator.RegistryCheck{})
		if err != nil {
			t.Fatal(err)
		}
		want := "looked=12 complete=true payloads=true unpublishable=7 more=0\n" + seen + `
order_created invalid_payload (data: /n: required) events=1 states=map[waiting:1]
order_created invalid_payload (the contract's check panicked) events=1 states=map[ready:1]
order_created other_version (version 1, and the contract is of version 2) events=1 states=map[ready:1] publishable`
		if toldOf(report) != want {
			t.Errorf("got\n%s\nwant\n%s", toldOf(report), want)
		}
		report, err = owner.CheckRegistry(t.Context(), registry, operator.RegistryCheck{NoPayloads: true})
		if err != nil || report.Payloads || report.Unpublishable != 5 {
			t.Errorf("%v: %s", err, toldOf(report))
		}
	})
}

// TestCheckRegistryReadsHeadersAsARelayDoes: who names the lane may have written any JSON.
func TestCheckRegistryReadsHeadersAsARelayDoes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		broken := map[outbox.ID]bool{}
		for _, headers := range []string{
			`{"trace":null}`, `{"a":"b","h":null}`, `null`, `{"h":1}`, `[]`, // of which a relay makes dead letters
			`{"null":"null"}`, `{"h":null,"h":"x"}`, `{}`,
		} {
			id := outbox.NewID()
			e.exec(`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id,
					payload_json, headers)
				VALUES ({schema}.outbox_lane('default', 'order', '1'), $1::text::uuid, 'order_created', 'order', '1',
				$2::text::json, $3::text::json)`, id.String(),
				`{"version":2,"eventId":"`+id.String()+`","occurredAt":"2026-01-31T12:00:00Z","data":{"n":1}}`, headers)
			if len(broken) < 5 {
				broken[id] = true
			}
		}
		report, err := operator.New(e.admin, e.schema).CheckRegistry(t.Context(), checkedRegistry(t),
			operator.RegistryCheck{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := toldOf(report), "looked=8 complete=true payloads=true unpublishable=5 more=0\n"+
			"order_created invalid_payload (headers: not an object of texts) events=5 states=map[ready:5]"; got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		for _, id := range report.Findings[0].Examples {
			if !broken[id] {
				t.Errorf("a relay publishes %s", id)
			}
		}
	})
}

// TestCheckRegistryIsBounded: by its limit, and in the number of its findings; and what is behind much that is
// published is found.
func TestCheckRegistryIsBounded(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		registry := checkedRegistry(t)
		// One aggregate has one lane. Above its floor is what was published behind an open transaction.
		for _, last := range []string{"6", "0"} {
			e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state)
				SELECT u.id, 'type_' || u.i % 150, 'order', '1', json_build_object('eventId', u.id), ` + last + `
				  FROM (SELECT {schema}.outbox_uuid7() AS id, i FROM generate_series(1, 3000) i) u`)
		}
		report, err := e.operator.CheckRegistry(t.Context(), registry, operator.RegistryCheck{})
		if err != nil || report.Looked != 3000 || !report.Complete || report.Unpublishable != 3000 ||
			len(report.Findings) != 100 || report.More != 1000 {
			t.Errorf("%v: %.200s", err, toldOf(report))
		}
		report, err = e.operator.CheckRegistry(t.Context(), registry, operator.RegistryCheck{Limit: 3500})
		if err != nil || report.Complete || report.Looked < 400 || report.Looked > 600 {
			t.Errorf("%v: %.200s", err, toldOf(report))
		}
		_, err = e.operator.CheckRegistry(t.Context(), registry, operator.RegistryCheck{Limit: operator.MaxChecked + 1})
		if !errors.Is(err, operator.ErrNotUnderstood) {
			t.Errorf("got %v", err)
		}
	})
}

// TestEventTypes: of a registry, of relays, and of what was emitted.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		document, err := contracts.Of(checkedRegistry(t), map[string]json.RawMessage{"order_created": json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		told := func(types *operator.EventTypes) (lines string) {
			for _, is := range types.Types {
				lines += fmt.Sprintf("%s registry=%t topic=%s v%d schema=%t relays=%d%v events=%d seen=%t held=%d %v "+
					"unknown=%t\n", is.Type, is.Registry, is.Topic, is.Version, is.Schema, is.Relays, is.RelayTopics, is.Events,
					is.LastSeenAt != nil, is.Held, is.Aggregates, is.Unknown)
			}
			return lines
		}
		e.exec(`INSERT INTO {schema}.outbox_relays (id, token, name, version) VALUES
			('00000000-0000-7000-8000-000000000001', gen_random_uuid(), 'one', '1')`)
		e.exec(`INSERT INTO {schema}.outbox_known (relay, event_type, topic) VALUES
			('00000000-0000-7000-8000-000000000001', 'order_paid', 'billing')`)
		e.emit(state.Ready, "order_created", "order", `{}`, 2)
		e.emit(state.Published, "order_created", "cart", `{}`, 2)
		e.emit(state.Parked, "order_lost", "order", `{}`, 2)

		const known = `order_paid registry=false topic= v0 schema=false relays=0[billing] events=0 seen=false held=0 [] ` +
			"unknown=false\n"
		types, err := e.operator.EventTypes(t.Context(), &document)
		if err != nil {
			t.Fatal(err)
		}
		const lost = "order_lost registry=false topic= v0 schema=false relays=0[] events=1 seen=true held=1 [order] " +
			"unknown=true\n"
		if want := "order_created registry=true topic=orders v2 schema=true relays=0[] events=2 seen=true held=0 " +
			"[cart order] unknown=false\n" + lost + known; told(types) != want || !types.Complete || types.Looked != 3 {
			t.Errorf("got\n%s\nwant\n%s", told(types), want)
		}
		types, err = e.operator.EventTypes(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := "order_created registry=false topic= v0 schema=false relays=0[] events=2 seen=true held=0 " +
			"[cart order] unknown=true\n" + lost + known; told(types) != want {
			t.Errorf("got\n%s\nwant\n%s", told(types), want)
		}
		// What is older than what is looked at is seen by the index, where there is one.
		e.operator.SetWindow(1)
		for _, seen := range []string{"seen=false", "seen=true"} {
			want := "schema=true relays=0[] events=0 " + seen
			if seen == "seen=true" {
				e.exec("CREATE INDEX outbox_events_event_type ON {schema}.outbox_events (event_type, seq)")
			}
			if types, err = e.operator.EventTypes(t.Context(), &document); err != nil || types.Complete ||
				!strings.Contains(told(types), want) {
				t.Errorf("%v: want %s\n%s", err, want, told(types))
			}
		}
	})
}

// TestContractsUseTheirIndexes: also where the statistics are of an empty table.
func TestContractsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec("ANALYZE {schema}.outbox_events") // of nothing
		e.exec(`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, state, published_at,
				payload_json)
			SELECT 1 + i % 64, (substr(md5(i::text), 1, 12) || '7' || substr(md5(i::text), 13, 3) || '8' ||
				substr(md5(i::text), 16, 15))::uuid, 'type_' || i % 10, 'order', (i % 5000)::text, 6, now(), '{}'
			FROM generate_series(1, 20000) i`)
		lanes, above := []int16{1, 2, 3}, []int64{0, 7, 9}
		for _, round := range []string{"stale", "fresh"} {
			if round == "fresh" {
				e.exec("CREATE INDEX outbox_events_event_type ON {schema}.outbox_events (event_type, seq)")
				e.exec("ANALYZE {schema}.outbox_events")
			}
			for statement, c := range map[string]struct {
				args  []any
				index string
			}{
				"contracts_ready":     {[]any{lanes, above, 10}, "outbox_events_pkey"},
				"contracts_held":      {[]any{lanes, above, 10}, "outbox_held_pkey"},
				"contracts_seen":      {[]any{100, 100}, "Index Scan Backward using outbox_events_id"},
				"contracts_seen_held": {[]any{100, 100}, "outbox_held_pkey"},
				"contracts_seen_last": {
					[]any{[]string{"type_1"}}, map[string]string{"stale": "", "fresh": "outbox_events_event_type"}[round],
				},
			} {
				plan, err := e.operator.PlanOfContracts(t.Context(), statement, c.args...)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(plan, c.index) || c.index != "" && strings.Contains(plan, "Seq Scan on outbox_events") {
					t.Errorf("%s, %s statistics:\n%s", statement, round, plan)
				}
			}
		}
	})
}
