package relay

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// stored is an event as a read returns it.
func stored(change ...func(*core.Event)) *core.Publish {
	id := outbox.NewID()
	event := &core.Event{
		Seq: 9007199254740993, ID: id, Type: "order_placed",
		Aggregate: core.Aggregate{Namespace: "default", Type: "order", ID: "7"},
		CreatedAt: time.Date(2026, 3, 1, 14, 30, 15, 123456000, time.FixedZone("", 7200)),
		Payload: json.RawMessage(`{"version":1,"eventId":"` + id.String() + `","occurredAt":"2026-03-01T12:30:15Z",` +
			`"data":{}}`),
	}
	for _, change := range change {
		change(event)
	}
	return &core.Publish{Event: event, Topic: "orders"}
}

func newTestSender(t testing.TB, publisher publish.Publisher) *sender {
	t.Helper()
	config := complete(t)
	config.Publisher = publisher
	config.Lease = time.Hour // no machine stands still for a thirtieth of it, after which nothing is sent
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return newSender(t.Context(), &r.config, newClock(), &sync.WaitGroup{}, make(chan result, 1))
}

// RL-4: what a message is made of.
func TestTheMessageOfAnEvent(t *testing.T) {
	t.Parallel()
	common := map[string]string{
		"event_type": "order_placed", "aggregate_type": "order", "aggregate_id": "7",
		"created_at": "2026-03-01T12:30:15.123456Z", "outbox_seq": "9007199254740993",
	}
	for name, is := range map[string]struct {
		change func(*core.Event)
		key    string
		more   map[string]string
	}{
		"plain": {func(*core.Event) {}, "default/order/7", nil},
		"namespace": {func(e *core.Event) {
			e.Aggregate.Namespace = "billing"
		}, "billing/order/7", map[string]string{"namespace": "billing"}},
		"tenant": {func(e *core.Event) { e.Tenant = "acme" }, "default/order/7", map[string]string{"tenant_id": "acme"}},
		"dedupe key": {func(e *core.Event) {
			e.DedupeKey = "k/1"
		}, "default/order/7", map[string]string{"dedupe_key": "k/1"}},
		"headers": {func(e *core.Event) {
			e.Headers = []byte(`{"traceparent":"00-1","empty":""}`)
		}, "default/order/7", map[string]string{"traceparent": "00-1", "empty": ""}},
		"whole": {func(e *core.Event) {
			e.CreatedAt = e.CreatedAt.Truncate(time.Second)
		}, "default/order/7", map[string]string{"created_at": "2026-03-01T12:30:15.000000Z"}},
		"odd id": {func(e *core.Event) {
			e.Aggregate.ID = "a/b ü"
		}, "default/order/a/b ü", map[string]string{"aggregate_id": "a/b ü"}},
		"redelivered": {func(e *core.Event) { e.State = core.Retrying }, "default/order/7", nil},
	} {
		p := stored(is.change)
		p.Redelivered, p.Attempt = name == "redelivered", 4
		message, failure := newTestSender(t, quiet).message(p)
		if failure != nil {
			t.Errorf("%s: refused: %+v", name, failure)
			continue
		}
		want := maps.Clone(common)
		want["event_id"] = p.Event.ID.String()
		maps.Copy(want, is.more)
		if !maps.Equal(message.Attributes, want) {
			t.Errorf("%s: the attributes are %v, want %v", name, message.Attributes, want)
		}
		if message.Key != is.key || message.Topic != "orders" || message.ID != p.Event.ID ||
			message.Redelivered != p.Redelivered || message.Attempt != 4 ||
			string(message.Body) != string(p.Event.Payload) || message.Seq != p.Event.Seq ||
			!message.CreatedAt.Equal(p.Event.CreatedAt) {
			t.Errorf("%s: the message is %+v", name, message)
		}
	}
}

// quiet acknowledges everything.
var quiet = publish.PublisherFunc(func(context.Context, *publish.Message) error { return nil })

// S10, EM-6: headers that somebody wrote past the library do not stand for what the row says.
func TestHeadersDoNotStandForTheRow(t *testing.T) {
	t.Parallel()
	p := stored(func(e *core.Event) {
		e.Headers = []byte(`{"event_id":"x","event_type":"x","aggregate_type":"x","aggregate_id":"x","created_at":"x",` +
			`"outbox_seq":"x","namespace":"evil","tenant_id":"evil","dedupe_key":"evil"}`)
	})
	message, failure := newTestSender(t, quiet).message(p)
	if failure != nil {
		return // that is an answer as well
	}
	for name, value := range message.Attributes {
		if value == "x" || value == "evil" {
			t.Errorf("%s is %q: whoever wrote the headers decides", name, value)
		}
	}
}

// RG-4, V3, V5: what breaks its contract never becomes a message.
func TestABrokenContractBecomesNoMessage(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]func(*core.Event){
		"invalid_payload":    func(e *core.Event) { e.Payload = []byte(`{"secret":"4111"}`) },
		"aggregate_mismatch": func(e *core.Event) { e.Aggregate.Type = "card" },
		"unknown_event_type": func(e *core.Event) { e.Type = "order_shipped" },
	} {
		message, failure := newTestSender(t, quiet).message(stored(change))
		if message != nil || failure == nil || failure.Class != core.Terminal || failure.Reason != reason ||
			!failure.Contract || strings.Contains(failure.Detail, "4111") {
			t.Errorf("%s: %+v, %+v", reason, message, failure)
		}
	}
	for _, headers := range []string{`{"a":1}`, `["a"]`, `null`, `{`} {
		message, failure := newTestSender(t, quiet).message(stored(func(e *core.Event) { e.Headers = []byte(headers) }))
		if headers == "null" && failure == nil && len(message.Attributes) == 6 { // none is none
			continue
		}
		if failure == nil || failure.Class != core.Terminal || !failure.Contract {
			t.Errorf("headers %s: %+v, %+v", headers, message, failure)
		}
	}
}

// C7: a process that stood still between the decision and the publish does not begin: the lane may be lost.
func TestWhatWasDecidedTooLongAgoIsNotSent(t *testing.T) {
	t.Parallel()
	sent := 0
	s := newTestSender(t, publish.PublisherFunc(func(context.Context, *publish.Message) error {
		sent++
		return nil
	}))
	p := stored()
	p.DecidedAt = s.clock.now()
	if outcome := s.publish(t.Context(), p); outcome.Class != core.Acknowledged || sent != 1 {
		t.Errorf("in time: %+v", outcome)
	}
	p.DecidedAt = s.clock.now() - s.config.Lease/30 - time.Millisecond
	if outcome := s.publish(t.Context(), p); outcome.Class != core.NotSent || sent != 1 {
		t.Errorf("too late: %+v, sent %d times", outcome, sent)
	}
	s.clock.at(time.Now().Add(s.config.Lease)) // the machine was suspended meanwhile
	p.DecidedAt = 0
	if outcome := s.publish(t.Context(), p); outcome.Class != core.NotSent || sent != 1 {
		t.Errorf("after a suspension: %+v, sent %d times", outcome, sent)
	}
}
