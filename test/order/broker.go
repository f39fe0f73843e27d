package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// reserved are the attributes that every message has besides the event's own headers.
var reserved = map[string]bool{
	"event_id": true, "event_type": true, "aggregate_type": true, "aggregate_id": true,
	"created_at": true, "tenant_id": true, "dedupe_key": true, "outbox_seq": true,
}

// sumOfHeaders is the sum of an event's own headers, whatever they travelled in.
func sumOfHeaders(headers map[string]string) check.Sum {
	if len(headers) == 0 {
		return check.Sum{}
	}
	text, _ := json.Marshal(headers) // sorted by name
	return check.SumOf(text)
}

// delivery is what the stream holds, in the judge's words.
func delivery(message jetstream.Msg) (check.Delivery, int64, error) {
	meta, err := message.Metadata()
	if err != nil {
		return check.Delivery{}, 0, fmt.Errorf("order: a message of the stream: %w", err)
	}
	own := map[string]string{}
	get := func(name string) string { return message.Headers().Get(name) }
	for name, values := range message.Headers() {
		if lower := strings.ToLower(name); !reserved[lower] && !strings.HasPrefix(lower, "nats-") && len(values) > 0 {
			own[lower] = values[0]
		}
	}
	id, err := outbox.ParseID(get("event_id"))
	if err != nil {
		return check.Delivery{}, 0, fmt.Errorf("order: message %d has no event_id: %w", meta.Sequence.Stream, err)
	}
	return check.Delivery{
		Index: meta.Sequence.Stream, ID: id, Type: get("event_type"), Topic: message.Subject(),
		Key: get("aggregate_type") + "/" + get("aggregate_id"), Payload: check.SumOf(message.Data()), Headers: sumOfHeaders(own),
	}, meta.Timestamp.UnixMicro(), nil
}

// readStream returns all deliveries in the order of their arrival, and when each came, in microseconds.
func (w *world) readStream(ctx context.Context) ([]check.Delivery, []int64, error) {
	last, err := w.arrivals(ctx)
	if err != nil || last == 0 {
		return nil, nil, err
	}
	consumer, err := w.js.OrderedConsumer(ctx, w.run, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, nil, fmt.Errorf("order: read the stream: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, nil, fmt.Errorf("order: read the stream: %w", err)
	}
	defer messages.Stop()
	deliveries := make([]check.Delivery, 0, last)
	times := make([]int64, 0, last)
	for uint64(len(deliveries)) < last {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, nil, fmt.Errorf("order: read the stream: %w", err)
		}
		d, at, err := delivery(message)
		if err != nil {
			return nil, nil, err
		}
		if d.Index != uint64(len(deliveries)+1) {
			return nil, nil, errors.New("order: the stream has a gap: somebody else deleted messages")
		}
		deliveries, times = append(deliveries, d), append(times, at)
	}
	return deliveries, times, nil
}
