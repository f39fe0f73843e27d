package googlepubsub_test

import (
	"context"
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// shipped is a type that came with the new version of the consumer.
var shipped = outbox.Define[order](outbox.Contract{Type: "order_shipped", Aggregate: "order", Topic: orders})

// While a deployment rolls, processes of the old version have messages of a type that only the new version handles.
// They give them back, and none is lost or a dead letter, whatever the subscription counts by itself.
func TestANewTypeWaitsForTheNewVersion(t *testing.T) {
	t.Parallel()
	withoutRetries := recommended()
	withoutRetries.RetryPolicy = nil
	for what, subscription := range map[string]*pb.Subscription{
		"recommended": recommended(), "without a retry policy": withoutRetries, "bare": bare(),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, subscription)
			ordinary := consumer.On(placed, func(context.Context, *consumer.Event, order) error { return nil })
			handled := make(chan *consumer.Event, 10)
			stop := w.run(t, w.consumer(t, consumer.Config{}, ordinary), googlepubsub.ConsumeConfig{DeadLetters: dead})
			message := newMessage("a", 1)
			message.Attributes["event_type"] = "order_shipped"
			w.publish(t, message)
			eventually.True(t, "the old version has had it", func() bool { return w.outcomes.of("a") > 0 })

			stopNew := w.run(t,
				w.consumer(t, consumer.Config{}, ordinary,
					consumer.On(shipped, func(_ context.Context, event *consumer.Event, _ order) error {
						handled <- event
						return nil
					})), googlepubsub.ConsumeConfig{DeadLetters: dead})
			stop()
			eventually.True(t, "everything is acknowledged", func() bool { return w.waiting(t) == 0 })
			stopNew()
			if len(handled) != 1 {
				t.Errorf("%d events of the new type reached their handler, want 1", len(handled))
			}
			if letters := w.pull(t, dead); len(letters) != 0 {
				t.Errorf("there are %d dead letters", len(letters))
			}
		})
	}
}
