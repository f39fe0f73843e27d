package relay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

// S-2, RL-11, RL-15, L5: the database goes while the broker acknowledges. What was acknowledged is settled when it comes
// back, within the lease, and so not sent twice; what was emitted meanwhile follows.
func TestTheDatabaseGoesAndComesBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *place) {
		const before, during, looks = 40, 20, 30
		x := startProxy(t, p.URL)
		var down atomic.Bool
		var gone time.Time
		cut := make(chan struct{})
		p.broker.answer = func(ctx context.Context, _ *relay.Message, _ int) error {
			if down.CompareAndSwap(false, true) {
				gone = time.Now()
				x.refuse()
				close(cut)
			}
			<-cut // all that are in flight are acknowledged after the database has gone
			return nil
		}
		for i := range before {
			p.emit(t, placed.New(fmt.Sprint(i), note{N: 1}))
		}
		p.start(t, "a", through(t, x), with(longLease))
		pgtest.Receive(t, "the database is gone", cut)
		for i := range during {
			p.emit(t, placed.New(fmt.Sprint(i), note{N: 2}))
		}
		eventually(t, "an outage that lasts", func() bool { return x.refused() > looks })
		tries, outage := x.refused(), time.Since(gone)
		if n := p.inState(t, published); n > 0 {
			t.Errorf("%d settles got through", n)
		}
		x.heal()
		p.awaitPublished(t, before+during)
		p.wantDelivered(t)
		// Each kind of call backs off on its own: some ten tries each in three seconds, and no hot loop.
		if most := looks + 50*outage.Seconds(); float64(tries) > most {
			t.Errorf("%d connections tried in %s, want at most %.0f", tries, outage, most)
		}
	})
}

// RL-15, L5: a relay that starts before its database waits for it.
func TestTheDatabaseIsDownAtTheStart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *place) {
		x := startProxy(t, p.URL)
		x.refuse()
		p.emit(t, placed.New("1", note{}))
		a := p.start(t, "a", through(t, x))
		eventually(t, "some tries", func() bool { return len(p.logs.lines(t, "msg", "the database cannot be used yet")) >= 3 })
		select {
		case <-a.done:
			t.Fatalf("it gave up: %v", a.err)
		default:
		}
		x.heal()
		p.awaitPublished(t, 1)
		p.wantDelivered(t)
		// And one that is told to stop while it waits does.
		nowhere := startProxy(t, p.URL)
		nowhere.refuse()
		b := p.start(t, "b", through(t, nowhere))
		eventually(t, "its first try", func() bool { return nowhere.refused() > 0 })
		if err := b.stop(t); err != nil {
			t.Errorf("stopped while it waited: %v", err)
		}
	})
}

// C11, RL-10, S9: sessions are killed again and again, and a lock keeps settles out for longer than a statement may take.
func TestKilledSessionsLoseNothingAndBlameNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *place) {
		const aggregates, each = 15, 10
		p.start(t, p.Schema, with(func(s *relay.Settings) { s.Lease = 6 * time.Second })) // a statement may take some two seconds
		for n := range each {
			for aggregate := range aggregates {
				p.emit(t, placed.New(fmt.Sprint(aggregate), note{N: n}))
			}
			eventually(t, "a session to kill", func() bool { return p.terminate(t, p.Schema) > 0 })
		}
		tx := p.Begin(t)
		if _, err := tx.Exec(t.Context(), p.SQL("LOCK TABLE {schema}.outbox_lanes IN ACCESS EXCLUSIVE MODE")); err != nil {
			t.Fatal(err)
		}
		p.emit(t, placed.New("locked", note{}))
		before := len(p.logs.lines(t, "msg", "the database failed"))
		eventually(t, "a call that the lock has ended", func() bool {
			return slices.ContainsFunc(p.logs.lines(t, "msg", "the database failed")[before:], func(line map[string]any) bool {
				text, _ := line["error"].(string)
				return strings.Contains(text, "timeout") || strings.Contains(text, "deadline")
			})
		})
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.awaitPublished(t, aggregates*each+1)
		p.wantInOrder(t)
	})
}
