package googlepubsub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// One acknowledgement that is slow holds up the renewal of all leases. What is being handled is not delivered again.
func TestASlowAcknowledgementEndsNoLease(t *testing.T) {
	t.Parallel()
	const slow, longerThanTheShortestLease = 5, 12 * time.Second
	w := newEnv(t, bare()) // without order: a copy would be handled at once
	w.inject(t, pubsubemulator.Fault{
		Kind: pubsubemulator.KindDelay, Method: "Acknowledge", Count: 1,
		Milliseconds: int(longerThanTheShortestLease.Milliseconds()),
	})
	begun, goOn := make(chan string, 100), make(chan struct{})
	handle := func(ctx context.Context, event *consumer.Event, _ order) error {
		if event.Aggregate.ID == "quick" {
			return nil
		}
		begun <- event.Aggregate.ID
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	stop := w.run(t, w.consumer(t, consumer.Config{Deadline: eventually.Patience}, consumer.On(placed, handle)),
		googlepubsub.ConsumeConfig{Lease: time.Minute})
	for number := range slow {
		w.publish(t, newMessage(fmt.Sprint("slow", number), number))
	}
	for range slow {
		eventually.Receive(t, "a slow handler runs", begun)
	}
	w.publish(t, newMessage("quick", 1))
	eventually.True(t, "the acknowledgement has arrived", func() bool { return w.waiting(t) == slow })
	if copies := len(begun); copies > 0 {
		t.Errorf("%d messages were delivered again while they were handled", copies)
	}
	close(goOn)
	eventually.True(t, "all are acknowledged", func() bool { return w.waiting(t) == 0 })
	stop()
}

// Events that nobody can handle now, as many as there are places, do not keep another one from being handled, though
// the loop may not ask whether the subscription has a retry policy and keeps them for a while.
func TestWhatWaitsTakesNoPlace(t *testing.T) {
	t.Parallel()
	const places = 16
	for what, test := range map[string]struct {
		eventType string
		handle    func(context.Context, *consumer.Event, order) error
		outcome   consumer.Outcome
	}{
		"fails":   {"order_placed", failing("bad", func() error { return errBroken }), consumer.Delayed},
		"unknown": {"order_lost", failing("", nil), consumer.Unknown},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, recommended())
			w.inject(t, pubsubemulator.Fault{
				Kind: pubsubemulator.KindError, Code: "PERMISSION_DENIED", Method: "GetSubscription",
			})
			stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, test.handle)),
				googlepubsub.ConsumeConfig{Concurrency: places})
			for number := range places {
				bad := newMessage("bad", number)
				bad.OrderingKey = fmt.Sprint("order/bad", number)
				bad.Attributes["event_type"] = test.eventType
				w.publish(t, bad)
			}
			eventually.True(t, "all have been looked at", func() bool { return w.outcomes.of("bad") >= places })
			w.publish(t, newMessage("good", 1))
			// They are kept for a minute and for four.
			if err := eventually.Within(t.Context(), 30*time.Second, "the good one is handled", func() (bool, error) {
				return w.outcomes.count(consumer.Handled, "good") == 1, nil
			}); err != nil {
				t.Error(err)
			}
			stop()
			if w.outcomes.count(test.outcome, "bad") == 0 {
				t.Errorf("no event was %s: this shows nothing", test.outcome)
			}
		})
	}
}

// An aggregate with a backlog is handled one event after the other. The others are handled beside it.
func TestABusyAggregateLeavesPlaces(t *testing.T) {
	t.Parallel()
	const places, backlog, others = 4, 30, 10
	w := newEnv(t, recommended())
	goOn := make(chan struct{})
	handle := func(ctx context.Context, event *consumer.Event, _ order) error {
		if event.Aggregate.ID != "busy" {
			return nil
		}
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for number := range backlog {
		w.publish(t, newMessage("busy", number))
	}
	for number := range others {
		w.publish(t, newMessage(fmt.Sprint(number), number))
	}
	stop := w.run(t, w.consumer(t, consumer.Config{Deadline: eventually.Patience}, consumer.On(placed, handle)),
		googlepubsub.ConsumeConfig{Concurrency: places})
	eventually.True(t, "the others are handled while the first of the backlog is", func() bool {
		return w.outcomes.count(consumer.Handled, "") == others
	})
	close(goOn)
	eventually.True(t, "the backlog is handled", func() bool {
		return w.outcomes.count(consumer.Handled, "busy") == backlog
	})
	stop()
	w.wantLeft(t, 0)
}
