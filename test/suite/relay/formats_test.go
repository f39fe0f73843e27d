package relay_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

const (
	source      = "https://shop.example.com/~orders/caf%C3%A9?a=b"
	traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	extension   = `größe "100%" %41 = ?`
)

// headers are what an event may carry: some that would confuse a CloudEvent, and some that would not.
var headers = map[string]string{
	"traceparent": traceParent, "ce-partitionkey": extension, "shop": "ü b",
	"ce-id": "evil", "ce-type": "evil", "Ce-Source": "evil", "ce-specversion": "0.3", "ce-time": "evil", "ce-a_b": "evil",
	"CE-SUBJECT":   "evil",
	"content-type": "application/cloudevents+json", "Content-Type": "application/cloudevents",
}

// ids of aggregates, as odd as they may be.
var ids = []string{
	"7", `a b "quoted" 100% %41`, "Grüße 東京 \U0001F600", "=?utf-8?b?eA==?=", "<script>alert(1)</script>&x=y;", "../..//",
	" x ", strings.Repeat("é", 256),
	"a,b=c;d", "{}[]\\^`|~", "\u200f\u2028\u00a0", "%", "'; DROP TABLE--", "a+b", "-_.!~*'()",
}

// env is an outbox with two contracts, one for each topic.
type env struct {
	*pgtest.DB
	asCloudEvents, asEnvelopes *outbox.ContractFor[json.RawMessage]
	registry                   *outbox.Registry
}

func newEnv(t *testing.T) *env {
	t.Helper()
	p := &env{DB: pgtest.New(t, pgtest.Servers()[0])}
	define := func(eventType string) *outbox.ContractFor[json.RawMessage] {
		return outbox.Define[json.RawMessage](outbox.Contract{
			Type: eventType, Aggregate: "vendor.order-1_X", Topic: pgtest.NewName("formats"), Namespace: "shop.eu",
		})
	}
	p.asCloudEvents, p.asEnvelopes = define("Order.created-v1_X"), define("order_shipped")
	var err error
	if p.registry, err = outbox.NewRegistry(p.asCloudEvents, p.asEnvelopes); err != nil {
		t.Fatal(err)
	}
	return p
}

var occurredAt = time.Date(2026, 3, 1, 12, 30, 15, 123456000, time.UTC)

// emit writes an event of each odd aggregate.
func (p *env) emit(t *testing.T, contract *outbox.ContractFor[json.RawMessage]) {
	t.Helper()
	tx := p.Begin(t)
	for _, id := range ids {
		made := contract.New(id, json.RawMessage(`{"text":"\u2028 <&> ü","n":12345678901234567890,"again":1.50}`))
		made.Headers, made.OccurredAt, made.Actor = headers, occurredAt, &outbox.Actor{Type: "user", ID: "u-7"}
		if _, err := outbox.Emit(t.Context(), outbox.InSchema(tx, p.Schema), made); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// stored are the payloads as they are in the table, by aggregate.
func (p *env) stored(t *testing.T, eventType string) map[string]string {
	t.Helper()
	rows, err := p.Pool.Query(t.Context(),
		p.SQL("SELECT aggregate_id, payload_json::text FROM {schema}.outbox_events WHERE event_type = $1"), eventType)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var id, payload string
		if err := rows.Scan(&id, &payload); err != nil {
			t.Fatal(err)
		}
		all[id] = payload
	}
	return all
}

// relay publishes until the test ends.
func (p *env) relay(t *testing.T, publisher publish.Publisher) {
	t.Helper()
	r, err := relay.New(relay.Config{
		Database: p.URL, Schema: p.Schema, Registry: p.registry, Publisher: publisher, Source: source,
		Formats: map[string]publish.Format{p.asCloudEvents.Contract().Topic: publish.CloudEvents},
	})
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, "the relay", r.Run)
}

// TestOnEachBroker emits, relays, and reads with the SDK of CloudEvents what the broker delivers.
func TestOnEachBroker(t *testing.T) {
	t.Parallel()
	for name, broker := range map[string]struct {
		open func(*testing.T, ...string) *brokerEnv
		// written is how the binding writes an attribute.
		written func(string) string
	}{
		"nats":   {natsEnv, percentEncoded},
		"pubsub": {pubsubEnv, func(value string) string { return value }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newEnv(t)
			w := broker.open(t, p.asCloudEvents.Contract().Topic, p.asEnvelopes.Contract().Topic)
			p.emit(t, p.asCloudEvents)
			p.emit(t, p.asEnvelopes)
			p.relay(t, w.publisher)
			wantCloudEvents(t, w.read(t, p.asCloudEvents.Contract().Topic, len(ids)),
				p.stored(t, p.asCloudEvents.Contract().Type), broker.written)
			wantEnvelopes(t, w.read(t, p.asEnvelopes.Contract().Topic, len(ids)), p.stored(t, p.asEnvelopes.Contract().Type))
		})
	}
}

// percentEncoded is what the binding of NATS asks for, in the words of net/url.
func percentEncoded(value string) string {
	var encoded strings.Builder
	for _, r := range value {
		if r > ' ' && r < 0x7f && r != '"' && r != '%' {
			encoded.WriteRune(r)
		} else {
			encoded.WriteString(strings.ReplaceAll(url.QueryEscape(string(r)), "+", "%20"))
		}
	}
	return encoded.String()
}

func wantCloudEvents(t *testing.T, messages []arrived, stored map[string]string, written func(string) string) {
	t.Helper()
	for _, message := range messages {
		id := message.attributes["aggregate_id"]
		if message.binding.ReadEncoding() != binding.EncodingBinary {
			t.Errorf("%q: the SDK takes it for %s", id, message.binding.ReadEncoding())
		}
		got, err := binding.ToEvent(t.Context(), message.binding)
		if err != nil {
			t.Errorf("%q: the SDK cannot read it: %v", id, err)
			continue
		}
		// The SDK hands out the attributes of a NATS message as they are written, and leaves the percents to whoever asked.
		want := event.New("1.0")
		want.SetID(message.attributes["event_id"])
		want.SetType("Order.created-v1_X")
		want.SetSource(written(source))
		want.SetSubject(written("vendor.order-1_X/" + id))
		want.SetTime(occurredAt)
		want.SetDataContentType("application/json")
		want.SetExtension("traceparent", traceParent)
		want.SetExtension("partitionkey", written(extension))
		want.DataEncoded = []byte(stored[id])
		if err := got.Validate(); err != nil {
			t.Errorf("%q: it is no CloudEvent: %v", id, err)
		}
		if got.String() != want.String() || string(got.Data()) != stored[id] || stored[id] == "" {
			t.Errorf("%q: the SDK reads\n%s\nwant\n%s", id, got, want)
		}
		envelope, err := outbox.DecodeEnvelope(got.Data())
		if err != nil || envelope.EventID.String() != got.ID() || message.attributes["event_type"] != got.Type() ||
			message.attributes["outbox_seq"] == "" {
			t.Errorf("%q: what deduplicates is gone: %+v, %v", id, message.attributes, err)
		}
		if read := message.attributes["ce-subject"]; read != "vendor.order-1_X/"+id ||
			message.attributes["ce-source"] != source {
			t.Errorf("%q: our own reader sees %q", id, read)
		}
		for name, value := range message.wire {
			if strings.Contains(value, "evil") || strings.EqualFold(name, "content-type") {
				t.Errorf("%q: a header speaks for the event: %s is %q", id, name, value)
			}
		}
	}
	wantEach(t, messages)
}

func wantEnvelopes(t *testing.T, messages []arrived, stored map[string]string) {
	t.Helper()
	for _, message := range messages {
		id := message.attributes["aggregate_id"]
		for _, added := range []string{"ce-source", "ce-subject", "ce-datacontenttype", "ce-traceparent"} {
			if _, is := message.wire[added]; is {
				t.Errorf("%q: an envelope has %s", id, added)
			}
		}
		given := maps.Clone(headers)
		maps.DeleteFunc(given, func(name, value string) bool { return message.attributes[name] == value })
		if len(given) != 0 {
			t.Errorf("%q: these headers are not as they were: %v in %v", id, given, message.attributes)
		}
		if string(message.body) != stored[id] || stored[id] == "" || message.attributes["event_id"] == "" {
			t.Errorf("%q: the body is %s", id, message.body)
		}
	}
	wantEach(t, messages)
}

// wantEach checks that every odd aggregate is there.
func wantEach(t *testing.T, messages []arrived) {
	t.Helper()
	seen := map[string]bool{}
	for _, message := range messages {
		seen[message.attributes["aggregate_id"]] = true
	}
	for _, id := range ids {
		if !seen[id] {
			t.Errorf("%q did not arrive: %s", id, fmt.Sprint(len(messages)))
		}
	}
}
