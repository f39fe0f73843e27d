package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/publish"
)

// Handlers makes a publisher of a consumer, so that events are handled in the relay's own process, by the handler of
// their type, and no broker is needed. An event counts as published when its handler has returned nil.
//
// A handler runs at least once per event, and for one aggregate and topic in order, one at a time. So it marks what it
// has handled as any consumer does, with the package inbox or with Config.Middleware. What it returns decides:
//
//   - nil and [consumer.ErrDuplicate]: the event is published.
//   - [consumer.Poison]: the event is dead at once.
//   - a [consumer.DelayError]: it is tried again, and nobody is charged. The relay's own backoff says when.
//   - any other error, a panic, the end of its deadline: the event is charged with an attempt and tried again, up to
//     the MaxAttempts of its contract or of the relay. When three different events of its type have failed
//     within an hour and none of it was handled since, that is taken for an outage: nobody is charged, and the topic
//     pauses until a handler succeeds.
//
// A handler has the relay's publish deadline, or the consumer's if that is shorter, and must end when its context does:
// a longer one needs a longer Lease. Up to Settings.Concurrency handlers run at a time.
//
// [New] fails if the handlers do not take every type of the registry: name those that need nothing in
// [consumer.Ignore], and they are published without a word. Where it cannot see that, because the publisher is inside
// another one, an event without a handler is never charged and waits; its topic pauses if it carries nothing else. An
// event of a type that the registry does not have is parked, as with every publisher.
func Handlers(c *consumer.Consumer) publish.Publisher { return &handlers{consumer: c} }

type handlers struct{ consumer *consumer.Consumer }

// Publish has the event handled. Of what a handler's error wraps nothing but the text goes on: a class of the relay's
// inside it, of a broker that the handler calls for instance, is about something else.
func (h *handlers) Publish(ctx context.Context, message *publish.Message) error {
	verdict := h.consumer.Try(ctx, message.Attributes, message.Body, message.Attempt)
	reason := errors.New(verdict.Reason)
	switch verdict.Outcome {
	case consumer.Handled, consumer.Duplicate, consumer.Ignored:
		return nil
	case consumer.Poisoned:
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: reason}
	case consumer.Failed:
		return &publish.RejectedError{Err: reason}
	case consumer.Delayed, consumer.Unknown:
		return &publish.TopicError{Err: reason}
	default: // nobody knows, so it is tried again
		return reason
	}
}

// mostNamed is how many event types an error names.
const mostNamed = 10

// problem says why the handlers cannot serve these event types.
func (h *handlers) problem(types []string) error {
	if h.consumer == nil {
		return errors.New("is relay.Handlers of no consumer: make one with consumer.New")
	}
	var missing []string
	for _, eventType := range types {
		if !h.consumer.Takes(eventType) {
			missing = append(missing, eventType)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := strings.Join(missing[:min(len(missing), mostNamed)], ", ")
	if more := len(missing) - mostNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("has no handler for %s: give each type of the Registry one, or name it in "+
		"consumer.Ignore", names)
}
