package drivers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// awkward are texts that some encoding on the way to the table could take for something else: array and
// string syntax, escapes, placeholders of other libraries, the words for null.
var awkward = []string{
	`NULL`, `null`, `{}`, `{a,b}`, `{"x","y"}`, `{NULL}`, `,`, `"`, `'`, `''`, `\`, `\\`, `\"`, `\x41`, `\n`, `E'\''`,
	`$1`, `$$`, `?`, `??`, `:name`, `::text`, `@name`, `%s`, `{schema}`, `-- comment`, `/* comment */`, `; SELECT 1`,
	` leading and trailing `, `ünïcode`, `ελληνικά`, `🙂`, "\u2028", "\ufeffmark", `back\slash"quote'comma,brace{}`,
}

// A row is a stored event as the database has it.
type row struct {
	id, aggregateID, payload   string
	tenant, dedupeKey, headers *string
}

// read returns the events of the cell's type in the order of seq.
func (c cell) read(t *testing.T) []row {
	t.Helper()
	rows, err := c.db.Pool.Query(t.Context(), c.db.SQL(`
		SELECT id::text, aggregate_id, payload_json::text, tenant_id, dedupe_key, headers::text
		  FROM {schema}.outbox_events WHERE event_type = $1 ORDER BY seq`), c.contract.Contract().Type)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.aggregateID, &r.payload, &r.tenant, &r.dedupeKey, &r.headers); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// testBytes emits every awkward text in every field that takes one, so many events per call, and requires
// them back unchanged. One event and many are different statements, with and without keys.
func testBytes(t *testing.T, c cell, together int, deduped bool) {
	var events []outbox.Event
	for i, text := range awkward {
		event := c.event(text, awkwardData(text))
		event.ID, event.OccurredAt = outbox.NewID(), time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
		event.TenantID = text
		event.Headers = map[string]string{"text": text, fmt.Sprintf("name-%d", i): ""}
		if deduped {
			event.DedupeKey = text + "/" + text
		}
		events = append(events, event)
	}
	in := c.begin(t)
	for at := 0; at < len(events); at += together {
		c.emit(t, in, events[at:at+together]...)
	}
	c.commit(t, in)

	stored := c.read(t)
	if len(stored) != len(events) {
		t.Fatalf("%d events are stored, want %d", len(stored), len(events))
	}
	for i, got := range stored {
		wantUnchanged(t, got, &events[i], awkward[i])
	}
}

// awkwardData has what a decoder and encoder would not bring back: spaces, repeated keys, the spelling
// of numbers and escapes.
func awkwardData(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf("{ \"text\" : %s,\"n\":1.50e+1, \"dup\":1,\"dup\":2,\t\"esc\":\"\\u00fc\\/\\n\\\\\", "+
		"\"null\":null, %s:[ {},[] ]}\n", quoted, quoted)
}

func wantUnchanged(t *testing.T, got row, event *outbox.Event, text string) {
	t.Helper()
	payload := fmt.Sprintf(`{"version":1,"eventId":"%s","occurredAt":"2026-01-02T03:04:05.000006Z","data":%s}`, event.ID,
		awkwardData(text))
	if got.payload != payload {
		t.Errorf("payload\n got %q\nwant %q", got.payload, payload)
	}
	if got.aggregateID != text || got.tenant == nil || *got.tenant != text {
		t.Errorf("aggregate id %q, tenant %v, want %q", got.aggregateID, got.tenant, text)
	}
	if event.DedupeKey != "" && (got.dedupeKey == nil || *got.dedupeKey != event.DedupeKey) {
		t.Errorf("dedupe key %v, want %q", got.dedupeKey, event.DedupeKey)
	}
	var headers map[string]string
	if got.headers == nil {
		t.Fatalf("%q: no headers", text)
	}
	if err := json.Unmarshal([]byte(*got.headers), &headers); err != nil || !maps.Equal(headers, event.Headers) {
		t.Errorf("headers %s (%v), want %v", *got.headers, err, event.Headers)
	}
}
