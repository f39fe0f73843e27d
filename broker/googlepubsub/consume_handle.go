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
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	case <-ctx.Done():
	}
	if ctx.Err() == nil && l.process(ctx, message) {
		message.Ack()
		return
	}
	message.Nack()
}

// process tells whether the message may be forgotten. It keeps the message between attempts that nobody else counts.
func (l *loop) process(ctx context.Context, message *pubsub.Message) bool {
	counted := message.DeliveryAttempt != nil // the subscription has a dead-letter policy
	for attempt := 1; ; attempt++ {
		if counted {
			attempt = *message.DeliveryAttempt
		}
		verdict := l.consumer.Process(ctx, message.Attributes, message.Data, attempt)
		switch {
		case verdict.Acknowledge():
			return true
		case verdict.Outcome == consumer.Delayed: // the loop stops
			return false
		case verdict.Outcome == consumer.Poisoned && l.config.DeadLetters != "":
			return l.deadLetter(ctx, message, attempt, verdict.Reason)
		case l.retries && (counted || verdict.Outcome == consumer.Unknown):
			return false
		}
		if wait.For(ctx, hold(verdict, counted)) != nil || counted || verdict.Outcome != consumer.Failed {
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
