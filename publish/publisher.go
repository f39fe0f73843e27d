package publish

import (
	"context"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Publisher sends events to one broker.
type Publisher interface {
	// Publish sends one message and returns nil only after the broker acknowledged it. The context ends at
	// the publish deadline; Publish must return soon after that.
	//
	// It is called from many goroutines at once, but never twice at a time for one aggregate on one topic.
	// What went wrong is said with [RejectedError], [TerminalError], [TopicError] and [ErrNotSent]; any other error,
	// and above all a deadline that passed, means that nobody knows whether the broker has the message:
	// it is sent again, and charged to the event only when the topic carried other events meanwhile. A panic is such
	// an error, too. Where no message can be the reason for that, because the broker's own clients would try for ever, it
	// is a TopicError, and nobody is charged.
	Publish(ctx context.Context, message *Message) error
}

// Pipeliner is a publisher whose broker keeps the order of pipelined messages of one key and, once one of
// them fails, fails all that were handed over behind it, until they are handed over anew. The
// relay then has several messages of one aggregate in flight. relaytest.TestPublisher tests the claim.
type Pipeliner interface {
	Publisher
	// Enqueue hands over a message in the order of the calls and calls done exactly once, from any
	// goroutine, with what Publish would have returned, and soon after the context has ended. It may block while the
	// client's buffer is full.
	Enqueue(ctx context.Context, message *Message, done func(error))
	// Depth is how many messages of one key may be in flight.
	Depth() int
}

// Message is an event on its way to a broker.
type Message struct {
	ID    outbox.ID
	Topic string
	// Key is the aggregate, as outbox.Aggregate has it: what the broker should keep in order.
	Key string
	// Body is the stored payload, byte for byte. It must not be changed.
	Body []byte
	// Attributes are event_id, event_type, aggregate_type, aggregate_id, created_at and outbox_seq, namespace where
	// it is not the default one, tenant_id and dedupe_key where the event has them, and the event's own headers; and
	// what the topic's [Format] adds.
	Attributes map[string]string

	Seq           int64
	Namespace     string
	EventType     string
	AggregateType string
	AggregateID   string
	CreatedAt     time.Time
	// Attempt is 1 for the first send, and one more for every send before it that counted against the event, as
	// attempt_count does: the broker refused this very message. It is no count of sends. One that is charged to nobody,
	// in an outage or as a relay dies, leaves the number as it was, and so does a failure that could not be settled: the
	// next send has the same number, and Redelivered. A redrive begins again at 1. It goes to the publisher only, and is
	// no attribute: a message is the same at every attempt.
	Attempt int
	// Redelivered tells that the broker may have been sent the event before.
	Redelivered bool
	// Request is the number of the request that a copy of a published event is sent for, which is the attribute
	// redelivered as well; zero: it is the event itself. A broker that drops what it has already must take a copy for
	// another message, and a second send of the same copy for the same.
	Request int64
}

// PublisherFunc makes a publisher of a plain function, for delivery inside the process. The function returns nil
// when the message is delivered; see [Publisher] for its errors.
type PublisherFunc func(ctx context.Context, message *Message) error

// Publish calls the function.
func (f PublisherFunc) Publish(ctx context.Context, message *Message) error { return f(ctx, message) }
