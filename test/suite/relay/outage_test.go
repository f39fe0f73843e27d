package relay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// S-2, RL-11, RL-15, L5: the database goes while the broker acknowledges. What was acknowledged is settled when it
// comes back, within the lease, and so not sent twice; what was emitted meanwhile follows.
func TestTheDatabaseGoesAndComesBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const before, during, looks = 40, 20, 30
		x := proxy.New(t, p.URL)
		var down atomic.Bool
		var gone time.Time
		cut := make(chan struct{})
		p.broker.answer = func(ctx context.Context, _ *publish.Message, _ int) error {
			if down.CompareAndSwap(false, true) {
				gone = time.Now()
				x.Block()
				close(cut)
			}
			<-cut // all that are in flight are acknowledged after the database has gone
			return nil
		}
		for i := range before {
			p.emit(t, placed.New(fmt.Sprint(i), note{N: 1}))
		}
		p.start(t, "a", through(t, x), with(longLease))
		eventually.Receive(t, "the database is gone", cut)
		for i := range during {
			p.emit(t, placed.New(fmt.Sprint(i), note{N: 2}))
		}
		eventually.True(t, "an outage that lasts", func() bool { return x.Blocked() > looks })
		tries, outage := x.Blocked(), time.Since(gone)
		if n := p.inState(t, published); n > 0 {
			t.Errorf("%d settles got through", n)
		}
		x.Heal()
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
	onEach(t, func(t *testing.T, p *env) {
		x := proxy.New(t, p.URL)
		x.Block()
		p.emit(t, placed.New("1", note{}))
		a := p.start(t, "a", through(t, x))
		eventually.True(t, "some tries", func() bool {
			return len(p.logs.lines(t, "msg", "the database cannot be used yet")) >= 3
		})
		select {
		case <-a.done:
			t.Fatalf("it gave up: %v", a.err)
		default:
		}
		x.Heal()
		p.awaitPublished(t, 1)
		p.wantDelivered(t)
		// And one that is told to stop while it waits does.
		nowhere := proxy.New(t, p.URL)
		nowhere.Block()
		b := p.start(t, "b", through(t, nowhere))
		eventually.True(t, "its first try", func() bool { return nowhere.Blocked() > 0 })
		if err := b.stop(t); err != nil {
			t.Errorf("stopped while it waited: %v", err)
		}
	})
}

// C11, RL-10, S9: sessions are killed again and again, and a lock keeps settles out for longer than a statement may
// take.
func TestKilledSessionsLoseNothingAndChargeNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const aggregates, each = 15, 10
		// A statement may take some two seconds.
		p.start(t, p.Schema, with(func(s *relay.Settings) { s.Lease = 6 * time.Second }))
		for n := range each {
			for aggregate := range aggregates {
				p.emit(t, placed.New(fmt.Sprint(aggregate), note{N: n}))
			}
			eventually.True(t, "a session to kill", func() bool { return p.terminate(t, p.Schema) > 0 })
		}
		tx := p.Begin(t)
		if _, err := tx.Exec(t.Context(), p.SQL("LOCK TABLE {schema}.outbox_relays IN ACCESS EXCLUSIVE MODE")); err != nil {
			t.Fatal(err)
		}
		p.emit(t, placed.New("locked", note{}))
		before := len(p.logs.lines(t, "msg", "the database failed"))
		eventually.True(t, "a call that the lock has ended", func() bool {
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
