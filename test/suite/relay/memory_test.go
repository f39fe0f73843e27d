package relay

import (
	"context"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// H4: what is in memory is bounded by bytes as well, whatever the batch.
func TestLargePayloadsAreHeldWithinTheBound(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events, size, bound = 25, 900 << 10, 4 << 20
		p.Exec(t, `SELECT {schema}.outbox_emit('order_raw', 'order', i::text, format('{"text":"%s"}', repeat('x', `+
			`$2))::json) FROM generate_series(1, $1) i`, events, size)
		full := make(chan struct{})
		p.broker.answer = func(ctx context.Context, _ *publish.Message, _ int) error {
			select {
			case <-full:
				<-time.After(5 * time.Millisecond) // so that there are some in flight
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		p.control.NoContractCheck = true // which is slow for such payloads under the race detector
		a := p.start(t, "a", with(func(s *relay.Settings) { s.Lease, s.MaxBytes = 60*time.Second, bound }))
		eventually.True(t, "as many in flight as fit", func() bool { return p.broker.inFlight() >= bound/size })
		// Reads that find nothing come every few milliseconds at first: it has looked again when it has not by now.
		looked := time.Now()
		eventually.True(t, "some more reads", func() bool { return time.Since(looked) > 300*time.Millisecond })
		held := a.Stats().InFlight
		close(full)
		p.awaitPublished(t, events)
		// The event with which the bound is reached is taken, and none behind it.
		if most := bound/size + 1; p.broker.most > most || held > most {
			t.Errorf("%d in flight and %d in memory, want at most %d", p.broker.most, held, most)
		}
		p.wantDelivered(t)
	})
}
