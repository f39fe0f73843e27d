package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// publish publishes copies in this order, and returns when the broker has them all.
func (s *stage) publish(ctx context.Context, order []int) error {
	for part := range slices.Chunk(order, 500) { // no more than the client lets wait
		var waiting []jetstream.PubAckFuture
		for _, i := range part {
			message, err := s.events[i].message(s.subject(), i+1)
			if err != nil {
				return err
			}
			future, err := s.env.js.PublishMsgAsync(message)
			if err != nil {
				return fmt.Errorf("inbox proof: publish: %w", err)
			}
			waiting = append(waiting, future)
		}
		for _, future := range waiting {
			select {
			case <-future.Ok():
			case err := <-future.Err():
				return fmt.Errorf("inbox proof: publish: %w", err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
