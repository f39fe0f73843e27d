package emit

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// FuzzEmitValidate: what the library accepts, PostgreSQL stores and gives back to the byte, and every broker takes;
// what it refuses is an ErrRefused; and outbox_emit is of the same opinion.
func FuzzEmitValidate(f *testing.F) {
	for _, in := range corpus.All() {
		if in.OnlyGo != "" || strings.Contains(in.Name, " in the ") { // one attack looks like another to the fuzzer
			continue
		}
		if g := in.Events()[0]; len(g.Data()) < 4096 && len(g.Headers) < 2 {
			addSeed(f, g)
		}
	}
	p, reachable := reachableEnv(f)
	all := reachableBrokers(f)
	f.Fuzz(func(t *testing.T, data []byte, aggregate, tenant, key, headerName, headerValue, actorID string, micros int64) {
		event := corpus.OrderCreated("")
		event.Payload = json.RawMessage(data)
		event.AggregateID, event.Tenant, event.Key = aggregate, tenant, key
		event.At = time.UnixMicro(micros).UTC()
		if headerName != "" || headerValue != "" {
			event.Headers = map[string]string{headerName: headerValue}
		}
		if actorID != "" {
			event.Actor = &outbox.Actor{Type: "user", ID: actorID}
		}
		stmt, err := outbox.Statement("s", event.Event())
		if (err == nil) == (stmt == nil) || err != nil && !errors.Is(err, outbox.ErrRefused) {
			t.Fatalf("neither a statement nor a refusal: %v, %v", stmt, err)
		}
		if reachable {
			p.agrees(t, event, err)
		}
		if err == nil {
			all.take(t, event)
		}
	})
}

func addSeed(f *testing.F, g corpus.Given) {
	f.Helper()
	var name, value, actor string
	for name, value = range g.Headers { //nolint:revive // there is at most one
	}
	if g.Actor != nil {
		actor = g.Actor.ID
	}
	f.Add(g.Data(), g.AggregateID, g.Tenant, g.Key, name, value, actor, g.At.UnixMicro())
}

func reachableEnv(f *testing.F) (p env, reachable bool) {
	f.Helper()
	server := pgtest.Servers()[0]
	conn, err := pgx.Connect(f.Context(), server.URL)
	if err != nil {
		f.Logf("without PostgreSQL, because %s does not answer: %v", server.Name, err)
		return env{}, false
	}
	_ = conn.Close(f.Context())
	return newEnv(f, pgtest.New(f, server)), true
}

// agrees asks PostgreSQL about the library's verdict, in a transaction that is rolled back.
func (p env) agrees(t *testing.T, event corpus.Given, verdict error) {
	t.Helper()
	tx := p.begin(t)
	if verdict == nil {
		receipts, err := corpus.Emit(t.Context(), tx, p.Schema, []corpus.Given{event})
		if err != nil {
			t.Fatalf("the library accepts it and PostgreSQL does not: %v", err)
		}
		if err := p.readBack(t.Context(), tx, event, receipts[0].ID.String()); err != nil {
			t.Fatal(err)
		}
		_ = tx.Rollback(t.Context())
		tx = p.begin(t)
	}
	for name, value := range event.Headers {
		if !utf8.ValidString(name + value) {
			return // JSON has no broken strings: what the function sees is repaired
		}
	}
	if event.Actor != nil && !utf8.ValidString(event.Actor.ID) {
		return
	}
	_, err := corpus.EmitSQL(t.Context(), tx, p.Schema, []corpus.Given{event})
	if (err == nil) != (verdict == nil) {
		t.Fatalf("the library says %v, outbox_emit says %v", verdict, err)
	}
	if err != nil && !clearlyRejected(err) {
		t.Fatal(err)
	}
}

// FuzzEnvelopeDecode: no bytes make it panic; what it takes for an envelope has exactly the five names,
// and says the same when it is written out and read again.
func FuzzEnvelopeDecode(f *testing.F) {
	const id = "01980a3c-0000-7000-8000-000000000001"
	good := corpus.OrderCreated(`{"total":1}`)
	good.Actor = &outbox.Actor{Type: "user", ID: "7", Name: "Ada"}
	f.Add([]byte(good.Envelope(id)))
	for _, payload := range []string{
		``, `null`, `{}`, `[]`, `{"version":1}`,
		`{"VERSION":1,"EVENTID":"` + id + `","OCCURREDAT":"2026-01-01T00:00:00Z","DATA":{}}`,
		`{"version":-1,"eventId":"` + id + `","occurredAt":"2026-01-01T00:00:00Z","data":{}}`,
		`{"version":2147483648,"eventId":"` + id + `","occurredAt":"2026-01-01T00:00:00Z","data":{}}`,
		`{"version":1,"eventId":"` + id + `","occurredAt":"2016-12-31T23:59:60Z","data":{}}`,
		`{"version":1,"eventId":"` + id + `","occurredAt":"2026-01-01T00:00:00Z","data":null}`,
		`{"version":1,"eventId":"` + id + `","occurredAt":"2026-01-01T00:00:00Z","actor":null,"data":{}}`,
		`{"version":1,"version":2,"eventId":"` + id + `","occurredAt":"9999-12-31T23:59:59Z","data":{},"more":1}`,
	} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		envelope, err := outbox.DecodeEnvelope(payload)
		if err != nil {
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(payload, &fields); err != nil {
			t.Fatalf("taken for an envelope, and not JSON: %v", err)
		}
		for _, name := range []string{"version", "eventId", "occurredAt", "data", "actor"} {
			if fields[name] == nil && name != "actor" {
				t.Fatalf("taken for an envelope without %s", name)
			}
			delete(fields, name)
		}
		if len(fields) != 0 || envelope.Version < 1 || string(envelope.Data) == "null" {
			t.Fatalf("taken for an envelope: %q", payload)
		}
		written, err := json.Marshal(envelope)
		if err != nil {
			t.Fatal(err)
		}
		again, err := outbox.DecodeEnvelope(written)
		if err != nil || again.EventID != envelope.EventID || again.Version != envelope.Version ||
			!again.OccurredAt.Equal(envelope.OccurredAt) {
			t.Fatalf("%q reads differently the second time: %v", payload, err)
		}
	})
}
