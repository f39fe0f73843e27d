package relay

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// longLease is one that no test waits for: what goes on within it was given back. A publish that hangs does so for
// longer than a test waits.
func longLease(s *relay.Settings) { s.Lease = time.Hour }

// C18, L4, RL-15: twenty stops under load. Nothing is sent twice, nobody is charged, the lanes are free at once and
// the next relay goes on.
func TestAStopUnderLoadLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const rounds, aggregates = 20, 30
		p.broker.answer = func(context.Context, *publish.Message, int) error {
			<-time.After(2 * time.Millisecond) // so that a stop finds something in flight
			return nil
		}
		emitted, stop := 0, make(chan struct{})
		var producer sync.WaitGroup
		defer producer.Wait()
		end := sync.OnceFunc(func() { close(stop) })
		defer end()
		producer.Go(func() {
			full := time.NewTicker(5 * time.Millisecond)
			defer full.Stop()
			for n := 0; ; n++ {
				var events []outbox.Event
				for aggregate := range aggregates {
					events = append(events, placed.New(fmt.Sprint(aggregate), note{N: n}))
				}
				if err := p.tryEmit(t.Context(), events...); err != nil {
					t.Error(err)
					return
				}
				for emitted += len(events); emitted-p.broker.count() > 10*aggregates; { // enough to do for now
					select {
					case <-stop:
						return
					case <-full.C:
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		for round := range rounds {
			name := fmt.Sprint("round ", round)
			r := p.start(t, name, with(longLease))
			eventually.True(t, "its first events, and more in flight", func() bool {
				return p.broker.countOf(name) > 20 && p.broker.inFlight() > 0
			})
			begin := time.Now()
			if err := r.stop(t); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > settings().Drain {
				t.Errorf("the stop took %s", took)
			}
			if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL"); n > 0 {
				t.Errorf("%d lanes are not free after the stop", n)
			}
		}
		end()
		producer.Wait()
		p.start(t, "last", with(longLease))
		p.awaitPublished(t, emitted)
		p.wantDelivered(t)
	})
}

// L4, C18: a stop waits for the broker as long as its drain and no longer. Lanes with something in flight stay taken:
// nobody may send it a second time while the first may still arrive.
func TestAStopEndsWithItsDrain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = func(ctx context.Context, _ *publish.Message, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}
		id := p.emit(t, placed.New("1", note{}))[0]
		r := p.start(t, "a", with(longLease), with(func(s *relay.Settings) { s.Drain = 300 * time.Millisecond }))
		eventually.True(t, "the event in flight", func() bool { return p.broker.inFlight() == 1 })
		begin := time.Now()
		if err := r.stop(t); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 300*time.Millisecond {
			t.Errorf("the stop took %s", took)
		}
		if !p.ownedLaneOf(t, "1") { // of the others see below: so short a drain may end before they are given back
			t.Error("the lane of the event in flight is free")
		}
		if r := p.row(t, id); r.state != ready || r.attempts != 0 {
			t.Errorf("the stop made of it %+v", r)
		}
	})
}

// ownedLaneOf tells whether somebody has the lane of an order.
func (p *env) ownedLaneOf(t testing.TB, aggregateID string) bool {
	t.Helper()
	return p.Count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL AND lane = "+
		"{schema}.outbox_lane('default', 'order', $1)", aggregateID) == 1
}

// L4, C18: lanes with nothing in flight do not wait for the one that has: they are given back while the stop goes on.
func TestAStopGivesBackTheLanesThatHaveNothingInFlight(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		answer := make(chan struct{})
		acknowledge := sync.OnceFunc(func() { close(answer) })
		defer acknowledge()
		p.broker.answer = func(context.Context, *publish.Message, int) error {
			<-answer
			return nil
		}
		id := p.emit(t, placed.New("1", note{}))[0]
		r := p.start(t, "a", with(longLease), with(func(s *relay.Settings) { s.Drain = time.Hour }))
		taken := func() int { return p.Count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL") }
		all := p.Count(t, "SELECT count(*) FROM {schema}.outbox_lanes")
		eventually.True(t, "the event in flight, and all lanes", func() bool {
			return p.broker.inFlight() == 1 && taken() == all
		})
		r.cancel()
		eventually.True(t, "all lanes but one are free", func() bool { return taken() <= 1 })
		if !p.ownedLaneOf(t, "1") {
			t.Error("the lane of the event in flight is free")
		}
		acknowledge()
		if err := r.stop(t); err != nil {
			t.Error(err)
		}
		if n := taken(); n > 0 {
			t.Errorf("%d lanes are not free after the stop", n)
		}
		if r := p.row(t, id); r.state != published {
			t.Errorf("the stop made of it %+v", r)
		}
	})
}
