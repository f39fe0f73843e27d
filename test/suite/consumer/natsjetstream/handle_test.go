package natsjetstream_test

import (
	"context"
	"testing"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// TestTypedEventsAreHandled, once each, with what they were published with.
func TestTypedEventsAreHandled(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	got := make(chan *consumer.Event, 10)
	c := w.consumerOf(consumer.Config{}, consumer.Ignore("another"),
		consumer.On(changed, func(_ context.Context, event *consumer.Event, payload license) error {
			if payload.N != 7 {
				t.Errorf("the payload is %+v", payload)
			}
			got <- event
			return nil
		}))
	w.durable(c, never)
	w.run(w.js, c, 0)
	id := w.emit("a", 7)
	event := eventually.Receive(t, "it is handled", got)
	if event.ID != id || event.Key() != "default/license/a" || event.Attempt != 1 || event.Seq != 1 ||
		event.Attributes["note"] != " kept as it is " {
		t.Errorf("the event is %+v", event)
	}
	other := w.message("a", 8)
	other.Attributes["event_type"] = "another"
	w.publish(other)
	w.done()
	if w.seen.count(id, consumer.Handled) != 1 || w.seen.count(other.ID, consumer.Ignored) != 1 || len(got) != 0 {
		t.Errorf("seen: %v", w.seen.all)
	}
	w.noLetters()
}
