package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// odd are payloads that a JSON library would write in another way.
var odd = map[string]string{
	"order and space": "{ \"data\" : { \"z\":1,\n\t\"a\" : [ 1 , 2 ] } ,\"occurredAt\":\"2026-03-01T12:30:15Z\",\r\n " +
		"\"eventId\" : \"{id}\" , \"version\":1 }",
	"repeated keys": `{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z","data":{"a":1,"a":2,"b":{"c":1,` +
		`"c":{}}}}`,
	"escapes": `{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z",` +
		`"data":{"t":"\u003c\u00e9\/\ud83d\ude00 < é / 😀 \u2028"}}`,
	"numbers": `{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z","data":{"n":[1.50,-0,1E+2,` +
		`12345678901234567890,0.10000000000000000001]}}`,
	"more fields": `{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z","actor":{"type":"user","id":"1"},` +
		`"data":{"later":{"x":null}}}`,
}

// RL-4, RG-5, P25: the body is what is stored, to the byte, at every attempt, and so is everything else.
func TestEveryAttemptSendsTheStoredBytes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = func(_ context.Context, _ *publish.Message, try int) error {
			if try < 3 {
				return &publish.RejectedError{Err: errors.New("once more")}
			}
			return nil
		}
		p.start(t, "a", with(longLease))
		ids := map[string]outbox.ID{}
		for name, payload := range odd {
			// One after the other: were those of many aggregates refused at once, nobody would be charged with an attempt.
			ids[name] = p.insert(t, "order_raw", "order", name, payload)
			p.awaitPublished(t, len(ids))
		}
		full := placed.New("full", note{N: 1, Text: "<&>\u2028"})
		full.TenantID, full.DedupeKey, full.Headers = "acme", "acme/1", map[string]string{"traceparent": "00-1-2-03", "x": ""}
		ids["full"] = p.emit(t, full)[0]
		p.awaitPublished(t, len(ids))
		for name, id := range ids {
			var stored string
			if err := p.Pool.QueryRow(t.Context(),
				p.SQL("SELECT payload_json::text FROM {schema}.outbox_events WHERE id = $1::text::uuid"),
				id.String()).Scan(&stored); err != nil {
				t.Fatal(err)
			}
			tries := p.broker.of(id)
			if len(tries) != 3 {
				t.Errorf("%s: %d tries", name, len(tries))
			}
			for i, d := range tries {
				if string(d.Body) != stored {
					t.Errorf("%s: try %d sends %q, stored is %q", name, i+1, d.Body, stored)
				}
				if !maps.Equal(d.Attributes, tries[0].Attributes) || d.Key != tries[0].Key || d.Topic != tries[0].Topic {
					t.Errorf("%s: try %d differs: %+v", name, i+1, d)
				}
				if d.Redelivered != (i > 0) || d.Attempt != i+1 {
					t.Errorf("%s: try %d says redelivered=%v, attempt %d", name, i+1, d.Redelivered, d.Attempt)
				}
			}
		}
	})
}

// RL-4: the attributes, as the row has them.
func TestTheAttributesAreThoseOfTheRow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		plain, full := placed.New("7", note{}), charged.New("c/1", note{})
		full.TenantID, full.DedupeKey, full.Headers = "acme", "acme/1", map[string]string{"traceparent": "00-1-2-03"}
		ids := p.emit(t, plain, full)
		p.start(t, "a")
		p.awaitPublished(t, 2)
		for i, want := range []struct {
			key, topic, namespace string
			more                  map[string]string
		}{
			{
				"default/order/7", "orders", "default",
				map[string]string{"event_type": "order_placed", "aggregate_type": "order", "aggregate_id": "7"},
			},
			{"billing/card/c/1", "bills", "billing", map[string]string{
				"event_type": "card_charged", "aggregate_type": "card", "aggregate_id": "c/1", "namespace": "billing",
				"tenant_id": "acme", "dedupe_key": "acme/1", "traceparent": "00-1-2-03",
			}},
		} {
			var created, seq string
			var at time.Time
			if err := p.Pool.QueryRow(t.Context(), p.SQL(`SELECT to_char(created_at AT TIME ZONE 'UTC', `+
				`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), seq::text, created_at
				FROM {schema}.outbox_events WHERE id = $1::text::uuid`), ids[i].String()).Scan(&created, &seq, &at); err != nil {
				t.Fatal(err)
			}
			want.more["event_id"], want.more["created_at"], want.more["outbox_seq"] = ids[i].String(), created, seq
			got := p.broker.of(ids[i])[0]
			if !maps.Equal(got.Attributes, want.more) {
				t.Errorf("the attributes are %v, want %v", got.Attributes, want.more)
			}
			if got.Key != want.key || got.Topic != want.topic || got.Namespace != want.namespace || !got.CreatedAt.Equal(at) ||
				got.ID != ids[i] {
				t.Errorf("the message is %+v", got.Message)
			}
		}
	})
}

// RL-16: any function is a publisher, and a deployment names the topics.
func TestAPlainFunctionUnderTheDeploymentsTopics(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		renamed, err := registry(t, contracts...).WithTopics(map[string]string{"orders": "pf-domain-events"})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 2)
		p.emit(t, placed.New("1", note{}), billed.New("1", note{}))
		p.start(t, "a", func(config *relay.Config) {
			config.Registry = renamed
			config.Publisher = publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
				got <- fmt.Sprint(message.EventType, " to ", message.Topic, ", attempt ", message.Attempt)
				return nil
			})
		})
		p.awaitPublished(t, 2)
		topics := map[string]bool{<-got: true, <-got: true}
		if !topics["order_placed to pf-domain-events, attempt 1"] || !topics["order_billed to bills, attempt 1"] {
			t.Errorf("published %v", topics)
		}
	})
}
