package torture

import (
	"context"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// An Eye sees what arrives at topics of somebody else's application, for the judge.
type Eye struct{ stage stage }

// OpenEye makes the topics and watches them from then on. On NATS they are the subjects of a stream of that name. The server
// must be one that only this run uses: nothing is removed from it.
func OpenEye(ctx context.Context, brokerAddress, name string, topics []string) (*Eye, error) {
	b, at, err := brokerAt(brokerAddress)
	if err != nil {
		return nil, err
	}
	s, err := b.open(ctx, at, name, topics)
	if err != nil {
		return nil, err
	}
	return &Eye{stage: s}, nil
}

// Arrivals is how many messages have arrived.
func (e *Eye) Arrivals(ctx context.Context) (uint64, error) { return e.stage.arrivals(ctx) }

// Deliveries returns all messages in the order of their arrival. It is asked once, when nobody publishes any more; published
// are the events that the broker must have.
func (e *Eye) Deliveries(ctx context.Context, published []outbox.ID) ([]check.Delivery, error) {
	list, _, err := e.stage.deliveries(ctx, published)
	return list, err
}

// Close closes the eye.
func (e *Eye) Close() error { return e.stage.leave() }

// SumOfHeaders is the sum of an event's own headers, as it is in deliveries.
func SumOfHeaders(text *string) check.Sum { return headersOf(text) }
