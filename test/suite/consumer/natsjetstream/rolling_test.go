package natsjetstream_test

import (
	"context"
	"testing"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// renamed is a type that came with the new version of the consumer.
var renamed = outbox.Define[license](outbox.Contract{
	Type: "license_renamed", Version: 1, Aggregate: "license", Topic: topic,
})

// TestANewTypeWaitsForTheNewVersion: while a deployment rolls, processes of the old version have messages of a type
// that only the new version handles. They give them back, and none is lost or blamed.
func TestANewTypeWaitsForTheNewVersion(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	handled := make(chan *consumer.Event, 10)
	ordinary := consumer.On(changed, func(context.Context, *consumer.Event, license) error { return nil })
	older := w.consumerOf(consumer.Config{}, ordinary)
	w.durable(older, never)
	stop := w.run(w.js, older, 0)
	message := w.message("a", 1)
	message.Attributes["event_type"] = "license_renamed"
	w.publish(message)
	eventually.True(t, "the old version has had it", func() bool { return w.seen.of(message.ID) > 0 })

	newer := w.consumerOf(consumer.Config{}, ordinary,
		consumer.On(renamed, func(_ context.Context, event *consumer.Event, _ license) error {
			handled <- event
			return nil
		}))
	w.run(w.connect(w.server.Address), newer, 0)
	w.emit("b", 1)
	stop()
	eventually.True(t, "the broker has nothing more to deliver", func() bool { return w.info().NumAckPending == 0 })
	w.done()
	if len(handled) != 1 {
		t.Errorf("%d events of the new type reached their handler, want 1; seen: %v", len(handled), w.seen.all)
	}
	w.noLetters()
}
