package googlepubsub_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/googleemulator"
)

// What a consumer promises holds with our emulator, which delivers as Google says that its service does.
func TestOrderAndFailures(t *testing.T) {
	t.Parallel()
	for what, check := range map[string]func(*testing.T, *env){
		"a failure in the middle": failureInTheMiddle, "a dead letter": deadLetter,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			check(t, newEnv(t, quick()))
		})
	}
}

// And with Google's own emulator, which nobody here has made.
func TestGooglesEmulator(t *testing.T) {
	t.Parallel()
	address := googleemulator.Start(t)
	w, remove := newGoogleEnv(t, address, quick())
	failureInTheMiddle(t, w)
	remove()
	// With order this emulator neither delivers a message again that has failed often enough nor makes it a dead
	// letter.
	unordered := quick()
	unordered.EnableMessageOrdering = false
	w, remove = newGoogleEnv(t, address, unordered)
	deadLetter(t, w)
	remove()
}

// quick is a subscription as it is recommended, whose failures do not wait for long.
func quick() *pb.Subscription {
	subscription := recommended()
	subscription.RetryPolicy = &pb.RetryPolicy{
		MinimumBackoff: durationpb.New(10 * time.Millisecond), MaximumBackoff: durationpb.New(10 * time.Millisecond),
	}
	return subscription
}

// newGoogleEnv makes topics and subscriptions. The function removes them, so that another env can be made there.
func newGoogleEnv(t *testing.T, address string, subscription *pb.Subscription) (w *env, remove func()) {
	t.Helper()
	w = &env{client: newClient(t, address)}
	w.createTopic(t, orders)
	w.createTopic(t, dead)
	w.createSubscription(t, &pb.Subscription{
		Name: subscriptionName(dead), Topic: topicName(dead), AckDeadlineSeconds: 600,
	})
	w.createSubscription(t, subscription)
	return w, func() {
		ctx := testContext(t)
		for _, id := range []string{name, dead} {
			request := &pb.DeleteSubscriptionRequest{Subscription: subscriptionName(id)}
			if err := w.client.SubscriptionAdminClient.DeleteSubscription(ctx, request); err != nil {
				t.Error(err)
			}
		}
		for _, id := range []string{orders, dead} {
			if err := w.client.TopicAdminClient.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: topicName(id)}); err != nil {
				t.Error(err)
			}
		}
	}
}

// failureInTheMiddle: one event of thirty of an aggregate fails twice. Whatever comes again because of it, everything
// has one effect.
func failureInTheMiddle(t *testing.T, w *env) {
	t.Helper()
	const events, bad = 30, 5
	e := newEffects(t)
	var mu sync.Mutex
	failures := 0
	handle := func(ctx context.Context, event *consumer.Event, payload order) error {
		mu.Lock()
		fails := payload.Number == bad && failures < 2
		if fails {
			failures++
		}
		mu.Unlock()
		switch {
		case fails:
			return errBroken
		case event.Aggregate.ID != "a":
			return nil // a marker
		}
		return e.handle(ctx, event, payload)
	}
	for number := range events {
		w.publish(t, newMessage("a", number+1))
	}
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, handle)), googlepubsub.ConsumeConfig{})
	eventually.True(t, "all have their effect", func() bool {
		return w.outcomes.count(consumer.Handled, "a") >= events
	})
	w.awaitEmpty(t)
	stop()
	e.wantOnce(t, events)
	if n := w.outcomes.count(consumer.Failed, "a"); n != 2 {
		t.Errorf("%d deliveries failed, want 2", n)
	}
}

// deadLetter: an event that always fails gets where it belongs, after as many attempts as the policy says, and no
// other one does.
func deadLetter(t *testing.T, w *env) {
	t.Helper()
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, failing("bad", func() error {
		return errBroken
	}))), googlepubsub.ConsumeConfig{})
	bad, next := newMessage("bad", 1), newMessage("next", 2)
	next.OrderingKey = bad.GetOrderingKey()
	w.publish(t, bad, next)
	letters := w.pullSome(t, dead, 1)
	w.awaitEmpty(t)
	stop()
	if len(letters) != 1 || letters[0].GetAttributes()["event_id"] != bad.GetAttributes()["event_id"] {
		t.Errorf("the dead letters are %v", letters)
	}
	if n := w.outcomes.count(consumer.Failed, "bad"); n != 5 {
		t.Errorf("tried %d times, want as often as the policy says: 5", n)
	}
	if w.outcomes.count(consumer.Handled, "next") < 1 {
		t.Error("the next event was not handled")
	}
}

// awaitEmpty waits until everything is acknowledged: a marker that is published last is handled, and so is everything
// ahead of it. Both emulators send the oldest first.
func (w *env) awaitEmpty(t *testing.T) {
	t.Helper()
	if w.emulator != nil {
		eventually.True(t, "everything is acknowledged", func() bool { return w.waiting(t) == 0 })
		return
	}
	for i := range 2 {
		marker := fmt.Sprint("marker-", i)
		w.publish(t, newMessage(marker, 1))
		eventually.True(t, "the marker is handled", func() bool { return w.outcomes.of(marker) > 0 })
	}
}
