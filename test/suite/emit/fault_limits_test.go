package emit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// Whatever is in the corpus under these names has been through the library and outbox_emit in TestCorpus;
// here it is held to the fault, and raw INSERTs to the table's own constraints.

func TestFaultA11PayloadTooLarge(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, limit := range []int{300, outbox.MaxPayloadBytes} {
			for _, size := range []int{limit - 1, limit, limit + 1} {
				event := corpus.OrderCreated(`{}`)
				event.Contract.MaxBytes = limit
				corpus.StoredSize(size)(&event)
				p.wantVerdict(t, fmt.Sprintf("%d of %d", size, limit), corpus.Emit, event, size > limit, fmt.Sprint(size),
					fmt.Sprint(limit))
				if limit == outbox.MaxPayloadBytes {
					p.wantVerdict(t, fmt.Sprintf("outbox_emit: %d", size), corpus.EmitSQL, event, size > limit, fmt.Sprint(size),
						fmt.Sprint(limit))
				}
			}
		}
		for size, rejection := range map[int]string{
			outbox.MaxContractBytes - 1: "", outbox.MaxContractBytes: "",
			outbox.MaxContractBytes + 1: "outbox_events_payload_size",
		} {
			event := corpus.OrderCreated(`{}`)
			event.ID = outbox.NewID()
			corpus.StoredSize(size)(&event)
			p.wantInsert(t, fmt.Sprintf("INSERT: %d", size), columns(event), rejection)
		}
	})
}

// wantVerdict emits one event and holds the emitter to refusing or storing it.
func (p env) wantVerdict(t *testing.T, what string, emit corpus.Emitter, event corpus.Given, rejected bool,
	says ...string,
) {
	t.Helper()
	tx := p.begin(t)
	_, err := emit(t.Context(), tx, p.Schema, []corpus.Given{event})
	_ = tx.Rollback(t.Context())
	if (err != nil) != rejected {
		t.Errorf("%s: got %v", what, err)
		return
	}
	for _, must := range says {
		if err != nil && !strings.Contains(err.Error(), must) {
			t.Errorf("%s: the error does not say %s: %v", what, must, err)
		}
	}
}

// columns is a row as a program would write it that knows nothing but the table.
func columns(event corpus.Given) map[string]any {
	return map[string]any{
		"id": event.ID.String(), "event_type": event.Contract.Type, "aggregate_type": event.Contract.Aggregate,
		"aggregate_id": event.AggregateID, "payload_json": event.Envelope(event.ID.String()),
	}
}

// wantInsert runs a raw INSERT. It must fail on this constraint, or with this SQLSTATE, or not at all.
func (p env) wantInsert(t *testing.T, what string, row map[string]any, rejection string) {
	t.Helper()
	var names, values []string
	var args []any
	for name, value := range row {
		args = append(args, value)
		names = append(names, name)
		kind := map[string]string{"id": "::text::uuid", "payload_json": "::text::json", "headers": "::text::json"}[name]
		values = append(values, fmt.Sprintf("$%d%s", len(args), corpus.Or(kind, "::text")))
	}
	tx := p.begin(t)
	_, err := tx.Exec(t.Context(),
		p.SQL("INSERT INTO {schema}.outbox_events ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(values, ", ")+")"),
		args...)
	_ = tx.Rollback(t.Context())
	got := ""
	if rejected, ok := errors.AsType[*pgconn.PgError](err); ok {
		got = corpus.Or(rejected.ConstraintName, rejected.Code)
	}
	if got != rejection || (err != nil) != (rejection != "") {
		t.Errorf("%s: want %q, got %q (%v)", what, rejection, got, err)
	}
}

// inCorpus finds what the corpus has under this prefix and runs it.
func (p env) inCorpus(t *testing.T, emit corpus.Emitter, atLeast int, prefixes ...string) {
	t.Helper()
	var chosen []corpus.Input
	for _, in := range corpus.All() {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(in.Name, prefix) }) {
			chosen = append(chosen, in)
		}
	}
	if len(chosen) < atLeast {
		t.Fatalf("the corpus has %d inputs for this fault, want %d", len(chosen), atLeast)
	}
	for _, problem := range checkCorpus(t.Context(), p, emit, chosen).Problems {
		t.Error(problem)
	}
}

func TestFaultA12HostileDocuments(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		p.inCorpus(t, corpus.Emit, 12, "utf8/NUL", "utf8/byte F", "utf8/overlong", "utf8/high surrogate",
			"utf8/low surrogate", "utf8/surrogates reversed",
			"json/number of", "json/exponent", "json/65 levels", "json/20,000 levels")
		// PostgreSQL's json stores these, and then cannot read any key of the row.
		for what, data := range map[string]string{
			"NUL escape": `{"t":"\u0000"}`, "NUL escape in a key": `{"\u0000":1}`, "high surrogate": `{"t":"\ud83d"}`,
			"low surrogate":       `{"t":"\udc0e"}`,
			"surrogates reversed": `{"t":"\udc0e\ud83d"}`,
		} {
			event := corpus.OrderCreated(data)
			event.ID = outbox.NewID()
			state := "22P02" // invalid surrogates
			if strings.Contains(what, "NUL") {
				state = "22P05"
			}
			p.wantInsert(t, what, columns(event), state)
		}
	})
}

func TestFaultA13NoObject(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, data := range []string{`null`, `""`, `[]`, `[{}]`, `true`, `7`, ``, ` `} {
			p.wantVerdict(t, "library: "+data, corpus.Emit, corpus.OrderCreated(data), true)
			p.wantVerdict(t, "outbox_emit: "+data, corpus.EmitSQL, corpus.OrderCreated(data), true)
		}
		p.wantVerdict(t, "library: {}", corpus.Emit, corpus.OrderCreated(`{}`), false)
		p.wantVerdict(t, "outbox_emit: {}", corpus.EmitSQL, corpus.OrderCreated(`{}`), false)
		tx := p.begin(t)
		if _, err := tx.Exec(t.Context(),
			p.SQL("SELECT {schema}.outbox_emit('order_created', 'order', '1', NULL)")); err == nil {
			t.Error("outbox_emit took SQL NULL for data")
		}
	})
}

// What the table itself refuses, whoever writes to it.
func TestRawInserts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		good := func(change func(row map[string]any, id string)) map[string]any {
			event := corpus.OrderCreated(`{}`)
			event.ID = outbox.NewID()
			row := columns(event)
			if change != nil {
				change(row, event.ID.String())
			}
			return row
		}
		set := func(column string, value any) map[string]any {
			return good(func(row map[string]any, _ string) { row[column] = value })
		}
		const envelope, notNull = "outbox_events_payload_is_envelope", "23502"
		for _, c := range []struct {
			what      string
			row       map[string]any
			rejection string
		}{
			{"a good row", good(nil), ""},
			{"payload SQL NULL", set("payload_json", nil), notNull},
			{"payload null", set("payload_json", "null"), envelope},
			{"payload empty array", set("payload_json", "[]"), envelope},
			{"payload empty string", set("payload_json", `""`), envelope},
			{"payload number", set("payload_json", "7"), envelope},
			{"payload without eventId", set("payload_json", `{"data":{}}`), envelope},
			{
				"payload with another eventId", set("payload_json", `{"eventId":"01980a3c-0000-7000-8000-000000000001"}`), envelope,
			},
			{"payload with eventId null", set("payload_json", `{"eventId":null}`), envelope},
			{"payload with eventId in capitals", good(func(row map[string]any, id string) {
				row["payload_json"] = `{"EVENTID":"` + id + `"}`
			}), envelope},
			{"id of version 4", set("id", "2f7c1d2e-4b5a-4c6d-8e9f-0a1b2c3d4e5f"), "outbox_events_id_is_uuid_v7"},
			{"id of the wrong variant", set("id", "01980a3c-0000-7000-0000-000000000001"), "outbox_events_id_is_uuid_v7"},
			{"type with a space", set("event_type", "a b"), "outbox_events_event_type"},
			{"type with a line break", set("event_type", "a\n"), "outbox_events_event_type"},
			{"type empty", set("event_type", ""), "outbox_events_event_type"},
			{"type too long", set("event_type", strings.Repeat("t", 129)), "outbox_events_event_type"},
			{"type NULL", set("event_type", nil), notNull},
			{"aggregate type with a quote", set("aggregate_type", `"`), "outbox_events_aggregate_type"},
			{"namespace with a slash", set("namespace", "a/b"), "outbox_events_namespace"},
			{"aggregate id empty", set("aggregate_id", ""), "outbox_events_aggregate_id"},
			{"aggregate id too long", set("aggregate_id", strings.Repeat("é", 257)), "outbox_events_aggregate_id"},
			{"aggregate id with a control character", set("aggregate_id", "a\u0085"), "outbox_events_aggregate_id"},
			{"aggregate id with a NUL", set("aggregate_id", "a\x00"), "22021"},
			{"tenant id empty", set("tenant_id", ""), "outbox_events_tenant_id"},
			{"tenant id too long", set("tenant_id", strings.Repeat("t", 129)), "outbox_events_tenant_id"},
			{"dedupe key with a line break", set("dedupe_key", "a\nb"), "outbox_events_dedupe_key"},
			{"dedupe key of another tenant", good(func(row map[string]any, _ string) {
				row["tenant_id"], row["dedupe_key"] = "acme", "other/1"
			}), "outbox_events_tenant_owns_key"},
			{"dedupe key of the tenant", good(func(row map[string]any, _ string) {
				row["tenant_id"], row["dedupe_key"] = "acme", "acme/1"
			}), ""},
			{"headers that are a list", set("headers", "[]"), "outbox_events_headers"},
			{"headers null", set("headers", "null"), "outbox_events_headers"},
			{"headers too large", set("headers", `{"h":"`+strings.Repeat("v", 1<<19)+`"}`), "outbox_events_headers"},
			{"header of the relay's", set("headers", `{"event_id":"x"}`), "outbox_events_headers"},
			{"header with a NUL", set("headers", `{"h":"\u0000"}`), "22P05"},
			{"headers", set("headers", `{"h":"v"}`), ""},
		} {
			p.wantInsert(t, c.what, c.row, c.rejection)
		}
	})
}
