package googlepubsub

import (
	"context"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// handle is what becomes of one delivery of a message.
//
// What Pub/Sub answers to an acknowledgement is not asked, not even of a subscription with exactly-once delivery, where
// it would tell: an acknowledgement that was lost makes the message come again, and the inbox knows that it is handled.
func (l *loop) handle(ctx context.Context, message *pubsub.Message) {
	s := &slot{places: l.places}
	defer s.leave()
	if s.take(ctx) == nil && l.process(ctx, message, s) {
		message.Ack()
		return
	}
	message.Nack()
}

// A slot is a message's right to be handled now. There are [ConsumeConfig.Concurrency] of them, and a message that
// waits has none: however many events fail, the others are handled.
type slot struct {
	places chan struct{}
	taken  bool
}

// take waits for a place, until ctx ends.
func (s *slot) take(ctx context.Context) error {
	select {
	case s.places <- struct{}{}:
		s.taken = true
	case <-ctx.Done():
	}
	return ctx.Err() // also where both were possible: nothing begins after the stop
}

func (s *slot) leave() {
	if s.taken {
		s.taken = false
		<-s.places
	}
}

// pause waits without the place, and then for one.
func (s *slot) pause(ctx context.Context, duration time.Duration) error {
	s.leave()
	if err := wait.For(ctx, duration); err != nil {
		return err
	}
	return s.take(ctx)
}

// process tells whether the message may be forgotten. It keeps the message between attempts that nobody else counts.
func (l *loop) process(ctx context.Context, message *pubsub.Message, slot *slot) bool {
	counted := message.DeliveryAttempt != nil // the subscription has a dead-letter policy
	for attempt := 1; ; attempt++ {
		if counted {
			attempt = *message.DeliveryAttempt
		}
		verdict := l.consumer.ProcessWith(ctx, message.Attributes, message.Data, attempt, slot.pause)
		switch {
		case verdict.Acknowledge():
			return true
		case verdict.Outcome == consumer.Delayed: // the loop stops
			return false
		case verdict.Outcome == consumer.Poisoned && l.config.DeadLetters != "":
			return l.deadLetter(ctx, message, slot, attempt, verdict.Reason)
		case l.retries && (counted || verdict.Outcome == consumer.Unknown):
			return false
		}
		slot.leave()
		if wait.For(ctx, hold(verdict, counted)) != nil || counted || verdict.Outcome != consumer.Failed ||
			slot.take(ctx) != nil {
			return false
		}
	}
}

// hold is how long a message that was not handled is kept before it is tried again or given back: Pub/Sub would send it
// again at once.
func hold(verdict consumer.Verdict, counted bool) time.Duration {
	switch {
	case verdict.Outcome == consumer.Unknown && counted:
		return time.Minute // each delivery brings it nearer to the dead letters
	case verdict.Outcome == consumer.Unknown:
		return 10 * time.Second // nobody counts, so it is never later than the first time
	case verdict.Outcome != consumer.Poisoned:
		return verdict.After
	case counted:
		return time.Second // it soon goes where it belongs
	default:
		return time.Minute // it has nowhere to go
	}
}
