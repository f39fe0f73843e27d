package outbox

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestEnvelopeHasExactlyTheseNames(t *testing.T) {
	t.Parallel()
	id, _ := ParseID("018f2f6e-1b2c-7d3e-8f40-123456789abc")
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901999, time.FixedZone("", 3600))
	for _, test := range []struct {
		name     string
		envelope Envelope
		want     string
	}{
		{
			"without an actor",
			Envelope{Version: 1, EventID: id, OccurredAt: at, Data: json.RawMessage(`{ "a" : 1 }`)},
			`{"version":1,"eventId":"018f2f6e-1b2c-7d3e-8f40-123456789abc","occurredAt":"2026-01-02T02:04:05.678901Z",` +
				`"data":{ "a" : 1 }}`,
		},
		{
			"with an actor",
			Envelope{Version: 2, EventID: id, OccurredAt: at, Actor: &Actor{Type: "user", ID: "7"}, Data: json.RawMessage(`{}`)},
			`{"version":2,"eventId":"018f2f6e-1b2c-7d3e-8f40-123456789abc","occurredAt":"2026-01-02T02:04:05.678901Z",` +
				`"actor":{"type":"user","id":"7"},"data":{}}`,
		},
	} {
		stored := string(test.envelope.appendTo(nil))
		if stored != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, stored, test.want)
		}
		back, err := DecodeEnvelope([]byte(stored))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if back.EventID != id || back.Version != test.envelope.Version || string(back.Data) != string(test.envelope.Data) {
			t.Errorf("%s: read back as %+v", test.name, back)
		}
	}
}

func TestDecodeEnvelopeRejects(t *testing.T) {
	t.Parallel()
	const whole = `{"version":1,"eventId":"018f2f6e-1b2c-7d3e-8f40-123456789abc","occurredAt":"2026-01-02T02:04:05Z",` +
		`"data":{}}`
	if _, err := DecodeEnvelope([]byte(whole)); err != nil {
		t.Fatalf("the whole one: %v", err)
	}
	for _, test := range []struct{ name, old, replacement, problem string }{
		{"not an object", whole, `[]`, "not a JSON object"},
		{"null", whole, `null`, "not a JSON object"},
		{"not JSON", whole, `{`, "not a JSON object"},
		{"no version", `"version":1,`, ``, "version is missing"},
		{"null version", `"version":1`, `"version":null`, "version is missing"},
		{"version zero", `"version":1`, `"version":0`, "version is not a positive number"},
		{"version in words", `"version":1`, `"version":"1"`, "version has the wrong form"},
		{"version 2^63", `"version":1`, `"version":9223372036854775808`, "version has the wrong form"},
		{"names in the wrong case", `"eventId"`, `"EventID"`, "eventId is missing"},
		{"eventId not a UUID", `018f2f6e-`, `x18f2f6e-`, "eventId has the wrong form"},
		{"occurredAt not a time", `2026-01-02T02:04:05Z`, `yesterday`, "occurredAt has the wrong form"},
		{"null actor", `"data"`, `"actor":null,"data"`, "actor is missing or null"},
		{"no data", `,"data":{}`, ``, "data is missing"},
		{"null data", `"data":{}`, `"data":null`, "data is missing or null"},
		{"a name too many", `"data":{}`, `"data":{},"extra":1`, "a field besides"},
	} {
		_, err := DecodeEnvelope([]byte(strings.Replace(whole, test.old, test.replacement, 1)))
		if err == nil || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.problem)
		}
	}
}

// What is read in haste is what is read with care.
func TestOccurredAt(t *testing.T) {
	t.Parallel()
	const id = `"eventId":"018f2f6e-1b2c-7d3e-8f40-123456789abc"`
	want := time.Date(2026, 3, 1, 12, 30, 15, 500000000, time.UTC)
	for name, payload := range map[string]string{
		"ours": `{"version":1,` + id + `,"occurredAt":"2026-03-01T12:30:15.500000Z",` +
			`"data":{"occurredAt":"1999-01-01T00:00:00Z"}}`,
		"with an actor": `{"version":1,` + id + `,"occurredAt":"2026-03-01T12:30:15.500000Z","actor":{"type":"a","id":"b"},` +
			`"data":{}}`,
		"by hand": `{"data":{"occurredAt":1}, "occurredAt":"2026-03-01T14:30:15.5+02:00", "version":1, ` + id + `}`,
	} {
		if got, err := OccurredAt([]byte(payload)); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, payload := range []string{``, `{}`, `{"version":1,` + id + `,"occurredAt":"yesterday","data":{}}`} {
		if got, err := OccurredAt([]byte(payload)); err == nil {
			t.Errorf("%s occurred at %s", payload, got)
		}
	}
}
