package torture

import (
	"context"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// A Recorder sees what arrives at topics of somebody else's application, for the checker.
type Recorder struct{ stage stage }

// OpenRecorder makes the topics and watches them from then on. On NATS they are the subjects of a stream of that name.
// The server must be one that only this run uses: nothing is removed from it.
func OpenRecorder(ctx context.Context, brokerAddress, name string, topics []string) (*Recorder, error) {
	b, at, err := brokerAt(brokerAddress)
	if err != nil {
		return nil, err
	}
	s, err := b.open(ctx, at, name, topics)
	if err != nil {
		return nil, err
	}
	return &Recorder{stage: s}, nil
}

// Arrivals is how many messages have arrived.
func (r *Recorder) Arrivals(ctx context.Context) (uint64, error) { return r.stage.arrivals(ctx) }

// Deliveries returns all messages in the order of their arrival. It is called once, when nobody publishes any more;
// published are the events that the broker must have.
func (r *Recorder) Deliveries(ctx context.Context, published []outbox.ID) ([]check.Delivery, error) {
	list, _, err := r.stage.deliveries(ctx, published)
	return list, err
}

// Close ends the recording.
func (r *Recorder) Close() error { return r.stage.leave() }

// SumOfHeaders is the sum of an event's own headers, as it is in deliveries.
func SumOfHeaders(text *string) check.Sum { return headersOf(text) }
