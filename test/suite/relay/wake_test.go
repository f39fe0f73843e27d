package relay

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// Pieces of the statements that look for new events, and for those that were overlooked, and of no others.
const (
	theRead  = "xids AS gone"
	theSweep = "e.seq > l.above"
)

// counting has a relay's sessions send statements with their text, and the proxy count those that have this one.
func counting(x *proxy.Proxy, text string) func(*relay.Config) {
	x.Count(text)
	return func(config *relay.Config) { config.Database += "&default_query_exec_mode=exec" }
}

// awaitSleep waits until the relay has not read for a second: its pauses double, and so the next one is longer.
func awaitSleep(t testing.TB, x *proxy.Proxy) {
	t.Helper()
	last, since := -1, time.Now()
	eventually.True(t, "a relay that sleeps", func() bool {
		if reads := x.Counted(); reads != last {
			last, since = reads, time.Now()
		}
		return last > 0 && time.Since(since) > time.Second
	})
}

// awaitListener waits until the session whose name is the schema's hears the bell.
func (p *env) awaitListener(t testing.TB) {
	t.Helper()
	eventually.True(t, "the listener", func() bool {
		return p.Count(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND (query LIKE 'LISTEN%' OR "+
			"query = '-- are you there')", p.Schema) == 1
	})
}

// W4, EM-12: a relay that sleeps for as long as it may is awake as soon as the bell rings.
func TestTheBellWakesARelayThatSleeps(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		x := proxy.New(t, p.URL)
		p.start(t, p.Schema, through(t, x), counting(x, theRead), with(func(s *relay.Settings) {
			s.Lease, s.Poll = time.Hour, 20*time.Minute
		}))
		p.awaitListener(t)
		// A ring gives up after some seconds. This one has as long as a busy machine needs.
		ring := outbox.RingPgx(p.Pool, p.Schema)
		bell := outbox.NewDoorbell(func(context.Context) error { return ring(t.Context()) })
		defer bell.Close()
		awaitSleep(t, x)
		before := x.Counted()
		bell.Ring()
		// Who is awake reads every few milliseconds at first. Left to its pauses, a relay that sleeps would take minutes for
		// as many.
		eventually.True(t, "reads after the bell", func() bool { return x.Counted() >= before+9 })
		awaitSleep(t, x)
		err := bell.After(outbox.InTx(t.Context(), p.Pool, func(ctx context.Context, tx pgx.Tx) error {
			_, err := outbox.Emit(ctx, outbox.InSchema(tx, p.Schema), placed.New("1", note{N: 1}))
			return err
		}))
		if err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the delivery", func() bool { return len(p.broker.took("1")) == 1 })
	})
}

// W1, EM-12: without the bell it takes until the next poll. What a poll misses is found by the sweep, which comes twice
// a minute: so it goes on until some were found and there was none.
func TestWithoutTheBellThePollFindsIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		x, listening := proxy.New(t, p.URL), proxy.New(t, p.URL)
		p.start(t, "a", through(t, x), counting(x, theSweep), with(func(s *relay.Settings) {
			s.Poll = time.Second
		}), func(config *relay.Config) {
			config.ListenDatabase = listening.Through(t, named(t, p.URL, p.Schema))
		})
		p.awaitListener(t)
		listening.Block() // and does not get back
		eventually.True(t, "nobody who listens", func() bool {
			return p.Count(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", p.Schema) == 0
		})
		for n, polled := 1, 0; polled < 3; n++ {
			if n > 20 {
				t.Fatalf("of %d events %d were found without a sweep", n, polled)
			}
			sweeps := x.Counted()
			p.emit(t, placed.New("1", note{N: n}))
			p.Exec(t, "SELECT {schema}.outbox_wake()") // which nobody hears
			eventually.True(t, "the delivery", func() bool { return len(p.broker.took("1")) == n })
			if x.Counted() == sweeps {
				polled++
			}
		}
		p.wantDelivered(t)
	})
}
