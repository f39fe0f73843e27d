package relaytest

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// createdAtLayout is RFC 3339 with microseconds, as the relay writes the attribute created_at.
const createdAtLayout = "2006-01-02T15:04:05.000000Z07:00"

// NewMessage makes a message as the relay would: event number seq, about the order with the given
// number. Every call makes a new id.
func NewMessage(topic string, order int, seq int64) *publish.Message {
	message := &publish.Message{
		ID:            outbox.NewID(),
		Topic:         topic,
		Seq:           seq,
		Namespace:     outbox.DefaultNamespace,
		EventType:     "order.placed",
		AggregateType: "order",
		AggregateID:   fmt.Sprintf("o-%d", order),
		CreatedAt:     time.Date(2026, 3, 29, 1, 59, 59, 123_456_000, time.UTC).Add(time.Duration(seq) * time.Microsecond),
		Attempt:       1,
	}
	message.Key = outbox.Aggregate{
		Namespace: message.Namespace, Type: message.AggregateType, ID: message.AggregateID,
	}.Key()
	message.Body = fmt.Appendf(nil,
		`{"version": 1, "eventId": "%s", "occurredAt": "2026-03-29T01:59:59Z", "data": {"total": 10.50, "seq": %d}}`,
		message.ID, seq)
	message.Attributes = map[string]string{
		"event_id":       message.ID.String(),
		"event_type":     message.EventType,
		"aggregate_type": message.AggregateType,
		"aggregate_id":   message.AggregateID,
		"created_at":     message.CreatedAt.Format(createdAtLayout),
		"outbox_seq":     strconv.FormatInt(seq, 10),
	}
	return message
}

// clone copies what a publisher could change.
func clone(message *publish.Message) *publish.Message {
	same := *message
	same.Body = bytes.Clone(message.Body)
	same.Attributes = maps.Clone(message.Attributes)
	return &same
}

// padded is the message with a body of about the given size: white space at its end, which JSON ignores.
func padded(message *publish.Message, bodyBytes int) *publish.Message {
	same := clone(message)
	if more := bodyBytes - len(same.Body); more > 0 {
		same.Body = append(same.Body, bytes.Repeat([]byte{' '}, more)...)
	}
	return same
}

// atLimit makes the largest message that the broker must take and the smallest that it must not.
func atLimit(h *Harness, fresh func() *publish.Message) (fits, tooLarge *publish.Message) {
	fits, tooLarge = fresh(), fresh()
	size := len(fits.Body)
	// The broker may count lengths in variable width, so the limit is approached and not computed.
	for next := padded(fits, h.MaxBytes); h.Size(next) > h.MaxBytes; next = padded(fits, size) {
		size = len(next.Body) - (h.Size(next) - h.MaxBytes)
	}
	for h.Size(padded(fits, size+1)) <= h.MaxBytes {
		size++
	}
	return padded(fits, size), padded(tooLarge, size+1)
}
