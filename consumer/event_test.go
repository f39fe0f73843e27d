package consumer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

func TestReadTakesWhatARelayWrites(t *testing.T) {
	t.Parallel()
	id := outbox.NewID()
	attributes := map[string]string{
		"event_id": id.String(), "event_type": happened, "aggregate_type": "thing", "aggregate_id": "7/8",
		"tenant_id":  "acme",
		"outbox_seq": "42", "created_at": "2026-01-02T03:04:05.123456Z", "traceparent": "00-1-2-01",
	}
	event, err := consumer.Read(attributes, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if event.ID != id || event.Type != happened || event.Key() != "default/thing/7/8" || event.TenantID != "acme" ||
		event.Seq != 42 ||
		!event.CreatedAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)) ||
		event.Attributes["traceparent"] != "00-1-2-01" ||
		string(event.Body) != "{}" || event.Attempt != 0 {
		t.Errorf("got %+v", event)
	}
}

// An aggregate is one of its namespace: the default one, unless the message says otherwise.
func TestReadTakesTheNamespace(t *testing.T) {
	t.Parallel()
	keys := map[string]string{}
	for _, attributes := range []map[string]string{
		{"aggregate_type": "order", "aggregate_id": "7"},
		{"aggregate_type": "order", "aggregate_id": "order/7"},
		{"aggregate_type": "order", "aggregate_id": "7", "namespace": "order"},
		{"aggregate_type": "order/7", "aggregate_id": "7", "namespace": "order"},
		{"aggregate_type": "7", "aggregate_id": "7", "namespace": "order/order"},
	} {
		attributes["event_id"], attributes["event_type"] = outbox.NewID().String(), happened
		event, err := consumer.Read(attributes, nil)
		if want := cmp.Or(attributes["namespace"], outbox.DefaultNamespace); err != nil || event.Aggregate.Namespace != want {
			t.Errorf("%v: got %+v, %v", attributes, event, err)
		}
		if other, is := keys[event.Key()]; is {
			t.Errorf("%q is the key of %s and of %+v", event.Key(), other, event.Aggregate)
		}
		keys[event.Key()] = fmt.Sprintf("%+v", event.Aggregate)
	}
}

// A message without id or type is no event; what else is broken is as if it were not there.
func TestReadOfBrokenMessages(t *testing.T) {
	t.Parallel()
	id := outbox.NewID().String()
	for _, attributes := range []map[string]string{
		nil,
		{},
		{"event_type": happened},
		{"event_id": id},
		{"event_id": "", "event_type": happened},
		{"event_id": "7", "event_type": happened},
		{"event_id": strings.Repeat("x", 1<<20), "event_type": happened},
		{"event_id": (outbox.ID{}).String(), "event_type": happened},
		{"Event_Id": id, "event_type": happened},
	} {
		event, err := consumer.Read(attributes, nil)
		var poison *consumer.PoisonError
		if !errors.As(err, &poison) || event == nil {
			t.Errorf("%.100v: got %+v, %v", attributes, event, err)
		}
		s := newEnv(t, consumer.Config{}, func(context.Context, *consumer.Event) error {
			t.Error("the handler was run")
			return nil
		})
		if got := s.Process(t.Context(), attributes, nil, 1); got.Outcome != consumer.Poisoned || len(got.Reason) > 2100 ||
			s.log.Len() > 10_000 {
			t.Errorf("%.100v: got %+v", attributes, got)
		}
	}
	for _, broken := range []string{
		"", " 1", "x", "-1", "0", "1.5", "9223372036854775808", "99999999999999999999999", "\x00",
	} {
		event, err := consumer.Read(map[string]string{
			"event_id": id, "event_type": happened, "outbox_seq": broken, "created_at": broken,
		}, nil)
		if err != nil || event.Seq != 0 || !event.CreatedAt.IsZero() {
			t.Errorf("%q: got %+v, %v", broken, event, err)
		}
	}
}

type thing struct {
	Number int `json:"number"`
}

var things = outbox.Define[thing](outbox.Contract{Type: happened, Aggregate: "thing", Topic: "things"})

// A handler gets what its contract says, and the envelope must be of the event that the message claims.
func TestOnDecodes(t *testing.T) {
	t.Parallel()
	id, other := outbox.NewID(), outbox.NewID()
	body := func(id outbox.ID, data string) string {
		return fmt.Sprintf(`{"version":1,"eventId":%q,"occurredAt":"2026-01-02T03:04:05Z","data":%s}`, id, data)
	}
	for sent, want := range map[string]consumer.Outcome{
		body(id, `{"number":7}`):               consumer.Handled,
		body(id, `{"number":7,"later":true}`):  consumer.Handled, // producers may add fields
		body(other, `{"number":7}`):            consumer.Poisoned,
		body(id, `{"number":"7"}`):             consumer.Poisoned,
		body(id, `[]`):                         consumer.Poisoned,
		`{"number":7}`:                         consumer.Poisoned, // no envelope
		`{"version":1,"data":{"number":7}}`:    consumer.Poisoned,
		"":                                     consumer.Poisoned,
		strings.Repeat("[", 100_000):           consumer.Poisoned,
		body(id, strings.Repeat("[", 100_000)): consumer.Poisoned,
	} {
		runs := 0
		c, err := consumer.New(consumer.Config{Name: "tester", Logger: slog.New(slog.DiscardHandler)},
			consumer.On(things, func(_ context.Context, event *consumer.Event, got thing) error {
				if runs++; got.Number != 7 || event.ID != id || string(event.Body) != sent {
					t.Errorf("%.100s: got %+v and %+v", sent, event, got)
				}
				return nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Process(t.Context(), attributesOf(id), []byte(sent), 1); got.Outcome != want ||
			runs == 1 != (want == consumer.Handled) {
			t.Errorf("%.100s: got %+v and %d runs", sent, got, runs)
		}
	}
}

// FuzzRead: whatever a message holds, it is an event with an id and a type, or poison; nothing panics, and what is
// handled is what was sent.
func FuzzRead(f *testing.F) {
	id := outbox.NewID().String()
	f.Add(id, happened, "thing", "7", "42",
		"2026-01-02T03:04:05.123456Z",
		`{"version":1,"eventId":"`+id+`","occurredAt":"2026-01-02T03:04:05Z","data":{"number":7}}`, 1)
	f.Add("", "", "", "", "", "", "", 0)
	f.Add(id, happened, "\xff", "\x00", "-1", "0000-00-00T00:00:00Z", "{", -1)
	f.Add((outbox.ID{}).String(), happened, "a", "b", "9223372036854775808", "9999-12-31T23:59:59Z", "null", 10)
	f.Fuzz(func(t *testing.T, id, eventType, aggregateType, aggregateID, seq, created, body string, attempt int) {
		handled := false
		c, err := consumer.New(consumer.Config{Name: "tester", Logger: slog.New(slog.DiscardHandler)},
			consumer.On(things, func(_ context.Context, event *consumer.Event, _ thing) error {
				handled = true
				if event.ID == (outbox.ID{}) || !strings.EqualFold(event.ID.String(), id) || event.Type != eventType ||
					event.Seq < 0 {
					t.Errorf("got %+v", event)
				}
				return nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		verdict := c.Process(t.Context(), map[string]string{
			"event_id": id, "event_type": eventType, "aggregate_type": aggregateType, "aggregate_id": aggregateID,
			"outbox_seq": seq, "created_at": created,
		}, []byte(body), attempt)
		if handled != (verdict.Outcome == consumer.Handled) || !handled && verdict.Outcome != consumer.Poisoned &&
			verdict.Outcome != consumer.Unknown {
			t.Errorf("handled=%t and %+v", handled, verdict)
		}
	})
}
