package relay

import (
	"context"
	"fmt"
	"testing"

	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// RL-14: whoever gets an event that may have been sent before is told so, whatever happened in between.
func TestASecondDeliveryIsMarkedAsSuch(t *testing.T) {
	t.Parallel()
	t.Run("after a pause", func(t *testing.T) {
		t.Parallel()
		onEach(t, func(t *testing.T, p *env) {
			const events = 6
			p.broker.answer = func(_ context.Context, _ *publish.Message, try int) error {
				if try == 1 {
					return context.DeadlineExceeded // and the broker has it all the same
				}
				return nil
			}
			for i := range events {
				p.emit(t, placed.New(fmt.Sprint(i), note{}))
			}
			p.start(t, "a")
			p.awaitPublished(t, events)
			p.wantMarked(t)
		})
	})
	t.Run("after a crash", func(t *testing.T) {
		t.Parallel()
		onEach(t, func(t *testing.T, p *env) {
			x := proxy.New(t, p.URL)
			p.broker.answer = func(context.Context, *publish.Message, int) error {
				x.Block()
				return nil
			}
			p.emit(t, placed.New("1", note{}))
			a := p.start(t, "a", through(t, x), with(crashing))
			eventually.True(t, "the acknowledgement", func() bool { return len(p.broker.took("1")) == 1 })
			a.crash(t, x)
			p.broker.answer = nil
			p.expire(t, "a")
			p.start(t, "b")
			p.awaitPublished(t, 1)
			p.wantMarked(t)
		})
	})
}

// wantMarked checks that every delivery but the first of an event says that it is not the first.
func (p *env) wantMarked(t testing.TB) {
	t.Helper()
	unmarked, again := 0, 0
	seen := map[string]bool{}
	for _, d := range p.broker.deliveries(func(*delivery) bool { return true }) {
		if seen[d.ID.String()] {
			again++
			if !d.Redelivered {
				unmarked++
			}
		}
		seen[d.ID.String()] = true
	}
	if unmarked > 0 || again == 0 {
		t.Errorf("%d of %d second deliveries are not marked", unmarked, again)
	}
}
