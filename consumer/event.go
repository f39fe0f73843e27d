package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// An Event is what a message says about an event. Only what [Read] needs is sure to be there.
type Event struct {
	ID   outbox.ID
	Type string
	// Aggregate is what the event is about. Its namespace is the default one if the message names none.
	Aggregate outbox.Aggregate
	TenantID  string
	// Seq is the event's number in its outbox, for inbox.Newer; 0 if the message has none.
	Seq       int64
	CreatedAt time.Time // when the event was emitted; zero if the message does not tell
	// Attempt counts the deliveries of the message, from 1; 0 where the broker does not tell.
	Attempt int
	// Attributes are all of the message's, the event's headers among them.
	Attributes map[string]string
	// Body is the envelope, byte for byte.
	Body []byte
}

// Key is the aggregate: events with the same one should be handled one after the other.
func (e *Event) Key() string { return e.Aggregate.Key() }

// Read reads a message that a relay has published. A message without an event's id and type is none: the error is a
// [PoisonError]. What else is broken is left out.
func Read(attributes map[string]string, body []byte) (*Event, error) {
	event := &Event{
		Type: attributes["event_type"], TenantID: attributes["tenant_id"], Attributes: attributes, Body: body,
		Aggregate: outbox.Aggregate{
			Namespace: cmp.Or(attributes["namespace"], outbox.DefaultNamespace), Type: attributes["aggregate_type"],
			ID: attributes["aggregate_id"],
		},
	}
	id, err := outbox.ParseID(attributes["event_id"])
	if err != nil {
		return event, Poison(fmt.Errorf("consumer: the attribute event_id: %w", err))
	}
	if id == (outbox.ID{}) { // all such events would share one mark
		return event, Poison(errors.New("consumer: the attribute event_id is zero"))
	}
	event.ID = id
	if event.Type == "" {
		return event, Poison(errors.New("consumer: the attribute event_type is missing"))
	}
	if seq, err := strconv.ParseInt(attributes["outbox_seq"], 10, 64); err == nil && seq > 0 {
		event.Seq = seq // of a number that is too large ParseInt makes the largest, and nothing would be newer than that
	}
	event.CreatedAt, _ = time.Parse(time.RFC3339Nano, attributes["created_at"])
	return event, nil
}

// A Handler handles an event. It should end when its context does.
type Handler func(ctx context.Context, event *Event) error

// A Middleware puts something around a consumer's handlers, for instance a guard or a span.
type Middleware func(consumer string, next Handler) Handler

// A Rule says what is done with an event type. Make one with [On], [OnType] or [Ignore].
type Rule struct {
	eventType string
	handle    Handler
	ignored   []string // instead of the two
}

// On handles the events of a contract with their payloads decoded. A payload that is not what the contract says, or is
// of another event than the message claims, is a [PoisonError]; what the contract has not heard of is left out, so that
// producers may add fields.
func On[P any](contract *outbox.ContractFor[P], handle func(ctx context.Context, event *Event, payload P) error) Rule {
	return Rule{eventType: contract.Contract().Type, handle: func(ctx context.Context, event *Event) error {
		payload, envelope, err := contract.Decode(event.Body)
		if err != nil {
			return Poison(err)
		}
		if envelope.EventID != event.ID {
			return Poison(fmt.Errorf("consumer: the envelope is of the event %s", envelope.EventID))
		}
		return handle(ctx, event, payload)
	}}
}

// OnType handles the events of a type as they are: for types without a contract.
func OnType(eventType string, handle Handler) Rule {
	return Rule{eventType: eventType, handle: handle}
}

// Ignore names event types that are on the topic and none of this consumer's business: their messages are acknowledged.
// Types that are neither handled nor named here are given back, because another process may know them: one of the next
// version, while a deployment rolls.
func Ignore(eventTypes ...string) Rule {
	return Rule{ignored: append([]string{}, eventTypes...)} // not nil, also for none
}
