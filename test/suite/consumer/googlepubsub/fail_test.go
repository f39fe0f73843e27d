package googlepubsub_test

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// failing handles everything but the events of one aggregate.
func failing(aggregate string, answer func() error) func(context.Context, *consumer.Event, order) error {
	return func(_ context.Context, event *consumer.Event, _ order) error {
		if event.Aggregate.ID == aggregate {
			return answer()
		}
		return nil
	}
}

// What cannot be handled ends among the dead letters after the policy's bound, and what follows is handled (fault I14).
func TestFaultI14Poison(t *testing.T) {
	t.Parallel()
	garbage := newMessage("bad", 1)
	garbage.Data = []byte("{")
	for what, test := range map[string]struct {
		message *pb.PubsubMessage
		handle  func(context.Context, *consumer.Event, order) error
		outcome consumer.Outcome
	}{
		"fails":  {newMessage("bad", 1), failing("bad", func() error { return errBroken }), consumer.Failed},
		"panics": {newMessage("bad", 1), failing("bad", func() error { panic("broken") }), consumer.Failed},
		"is poison": {
			newMessage("bad", 1), failing("bad", func() error { return consumer.Poison(errBroken) }), consumer.Poisoned,
		},
		"undecodable":   {garbage, failing("", nil), consumer.Poisoned},
		"no attributes": {&pb.PubsubMessage{Data: []byte("hello")}, failing("", nil), consumer.Poisoned},
		"no body":       {&pb.PubsubMessage{Attributes: map[string]string{"a": "b"}}, failing("", nil), consumer.Poisoned},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, recommended())
			stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, test.handle)), googlepubsub.ConsumeConfig{})
			next := newMessage("next", 2)
			next.OrderingKey = test.message.GetOrderingKey()
			w.publish(t, test.message, next)
			letter := w.pullSome(t, dead, 1)[0]
			// It may be so again with each redelivery of the one ahead of it.
			eventually.True(t, "the next event is handled", func() bool {
				return w.outcomes.count(consumer.Handled, "next") >= 1
			})
			w.awaitEmpty(t) // and not once more on its way
			stop()
			if string(letter.GetData()) != string(test.message.GetData()) ||
				letter.GetAttributes()["event_id"] != test.message.GetAttributes()["event_id"] {
				t.Errorf("the dead letter is not the message: %v", letter)
			}
			if n := w.outcomes.count(test.outcome, test.message.GetAttributes()["aggregate_id"]); n != 5 {
				t.Errorf("tried %d times, want as often as the policy says: 5", n)
			}
			w.wantLeft(t, 0)
		})
	}
}

// A failure that does not last costs nothing but time.
func TestAFailureIsTriedAgain(t *testing.T) {
	t.Parallel()
	for what, subscription := range map[string]*pb.Subscription{"policies": recommended(), "none": bare()} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, subscription)
			var tried atomic.Int64
			answer := func() error {
				if tried.Add(1) == 1 {
					panic("broken")
				}
				return nil
			}
			stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, failing("bad", answer))),
				googlepubsub.ConsumeConfig{})
			w.publish(t, newMessage("bad", 1))
			eventually.True(t, "it is handled", func() bool { return w.outcomes.count(consumer.Handled, "bad") == 1 })
			stop()
			w.wantLeft(t, 0)
		})
	}
}

// Without a retry policy Pub/Sub sends a message again at once. The loop makes that no hot loop.
func TestAFailingMessageIsHeld(t *testing.T) {
	t.Parallel()
	subscription := recommended()
	subscription.RetryPolicy = nil
	w := newEnv(t, subscription)
	times := make(chan time.Time, 100)
	handle := failing("bad", func() error { times <- time.Now(); return errBroken })
	w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, handle)), googlepubsub.ConsumeConfig{})
	w.publish(t, newMessage("bad", 1))
	first, second, third := eventually.Receive(t, "a try", times), eventually.Receive(t, "a second try", times),
		eventually.Receive(t, "a third try", times)
	if second.Sub(first) < time.Second || third.Sub(second) < 2*time.Second {
		t.Errorf("tried again after %s and %s, want a second and two", second.Sub(first), third.Sub(second))
	}
}

// With a retry policy it is Pub/Sub that holds a failing message, and the loop has its place for another one.
func TestAFailingMessageTakesNoPlace(t *testing.T) {
	t.Parallel()
	subscription := recommended()
	subscription.DeadLetterPolicy.MaxDeliveryAttempts = 100
	w := newEnv(t, subscription)
	stop := w.run(t, w.consumer(t, consumer.Config{MaxAttempts: 1000}, consumer.On(placed, failing("bad", func() error {
		return errBroken
	}))),
		googlepubsub.ConsumeConfig{Concurrency: 1})
	w.publish(t, newMessage("bad", 1))
	// Held, ten tries would take five minutes and a half.
	eventually.True(t, "it has failed ten times", func() bool { return w.outcomes.count(consumer.Failed, "bad") >= 10 })
	w.publish(t, newMessage("good", 1))
	eventually.True(t, "another one is handled", func() bool { return w.outcomes.count(consumer.Handled, "good") == 1 })
	stop()
}

// Without a dead-letter policy the loop counts, and publishes the dead letter by itself.
func TestDeadLettersOfTheLoop(t *testing.T) {
	t.Parallel()
	w := newEnv(t, bare())
	handle := failing("bad", func() error { return errBroken })
	stop := w.run(t, w.consumer(t, consumer.Config{MaxAttempts: 3}, consumer.On(placed, handle)),
		googlepubsub.ConsumeConfig{DeadLetters: dead})
	bad, foreign := newMessage("bad", 1), &pb.PubsubMessage{Data: []byte("hello")}
	w.publish(t, bad, newMessage("next", 2), foreign)
	for _, letter := range w.pullSome(t, dead, 2) {
		got := letter.GetAttributes()
		attempts, reason, data := "3", "broken", bad.GetData()
		if got["event_id"] == "" {
			attempts, reason, data = "1", "event_id", foreign.GetData()
		} else if got["event_id"] != bad.GetAttributes()["event_id"] || letter.GetOrderingKey() != bad.GetOrderingKey() {
			t.Errorf("the dead letter is not the message: %v", letter)
		}
		if string(letter.GetData()) != string(data) || got[googlepubsub.AttributeAttempts] != attempts ||
			!strings.Contains(got[googlepubsub.AttributeReason], reason) ||
			got[googlepubsub.AttributeConsumer] != name || got[googlepubsub.AttributeSubscription] != name {
			t.Errorf("the dead letter says %v", letter)
		}
	}
	eventually.True(t, "the next event is handled", func() bool { return w.outcomes.count(consumer.Handled, "next") == 1 })
	stop()
	w.wantLeft(t, 0)
}

// A dead letter that cannot be written is kept until it can be.
func TestDeadLettersAreNotLost(t *testing.T) {
	t.Parallel()
	w := newEnv(t, bare())
	w.inject(t, pubsubemulator.Fault{
		Kind: pubsubemulator.KindError, Code: "PERMISSION_DENIED", Method: "Publish", Topic: topicName(dead),
	})
	log := &records{}
	handler := w.consumer(t, consumer.Config{Logger: log.logger()}, consumer.On(placed, failing("bad", func() error {
		return consumer.Poison(errBroken)
	})))
	stop := w.run(t, handler, googlepubsub.ConsumeConfig{DeadLetters: dead})
	w.publish(t, newMessage("bad", 1))
	eventually.True(t, "the log says so", func() bool { return log.has("a dead letter is not published") })
	stop() // and what is kept is given back
	w.wantLeft(t, 1)
	stop = w.run(t, handler, googlepubsub.ConsumeConfig{DeadLetters: dead})
	eventually.True(t, "it came again", func() bool { return w.outcomes.count(consumer.Poisoned, "bad") == 2 })
	w.emulator.ClearFaults()
	w.pullSome(t, dead, 1)
	stop()
	w.wantLeft(t, 0)
}

// A message that has no room for the reason is a dead letter without one.
func TestDeadLettersWithoutAReason(t *testing.T) {
	t.Parallel()
	w := newEnv(t, bare())
	w.inject(t, pubsubemulator.Fault{
		Kind: pubsubemulator.KindError, Code: "INVALID_ARGUMENT", Method: "Publish", Topic: topicName(dead), Count: 1,
	})
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, failing("bad", func() error {
		return consumer.Poison(errBroken)
	}))), googlepubsub.ConsumeConfig{DeadLetters: dead})
	bad := newMessage("bad", 1)
	w.publish(t, bad)
	if letter := w.pullSome(t, dead, 1)[0]; !maps.Equal(letter.GetAttributes(), bad.GetAttributes()) ||
		string(letter.GetData()) != string(bad.GetData()) {
		t.Errorf("the dead letter is not the message: %v", letter)
	}
	stop()
	w.wantLeft(t, 0)
}

// With neither a policy nor a topic a message that cannot be handled stays where it is.
func TestPoisonWithoutDeadLettersIsNotLost(t *testing.T) {
	t.Parallel()
	w := newEnv(t, bare())
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, failing("bad", func() error {
		return consumer.Poison(errBroken)
	}))), googlepubsub.ConsumeConfig{})
	w.publish(t, newMessage("bad", 1), newMessage("next", 2))
	eventually.True(t, "both were looked at", func() bool {
		return w.outcomes.count(consumer.Poisoned, "bad") == 1 && w.outcomes.count(consumer.Handled, "next") == 1
	})
	stop()
	w.wantLeft(t, 1)
	if left := w.pullSome(t, name, 1); left[0].GetAttributes()["aggregate_id"] != "bad" {
		t.Errorf("left: %v", left)
	}
}
