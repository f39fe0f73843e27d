package relay

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
)

// awaitSleep waits until the relay has not read for three seconds. The server counts its reads.
func (p *place) awaitSleep(t testing.TB) {
	t.Helper()
	last, since := -1, time.Now()
	eventually(t, "a relay that sleeps", func() bool {
		reads := p.Count(t, `SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE schemaname = $1 AND indexrelname = 'outbox_events_ready'`, p.Schema)
		if reads != last {
			last, since = reads, time.Now()
		}
		return reads > 0 && time.Since(since) > 3*time.Second
	})
}

// W4, EM-12: a relay that sleeps for as long as it may is awake as soon as the bell rings.
func TestTheBellWakesARelayThatSleeps(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *place) {
		p.start(t, "a", with(func(s *relay.Settings) { s.Lease, s.Poll = 60*time.Second, 20*time.Second }))
		bell := outbox.NewDoorbell(outbox.RingPgx(p.Pool, p.Schema))
		defer bell.Close()
		for round := 1; round <= 2; round++ {
			p.awaitSleep(t)
			err := bell.After(outbox.InTx(t.Context(), p.Pool, func(ctx context.Context, tx pgx.Tx) error {
				_, err := outbox.Emit(ctx, outbox.InSchema(tx, p.Schema), placed.New("1", note{N: round}))
				return err
			}))
			if err != nil {
				t.Fatal(err)
			}
			took := within(t, 20*time.Second, "the delivery", func() bool { return len(p.broker.took("1")) == round })
			if took > 2*time.Second { // a moment, on a machine with nothing else to do
				t.Errorf("round %d: delivered %s after the bell", round, took)
			}
		}
	})
}

// W1, EM-12: without the bell it takes until the next poll.
func TestWithoutTheBellThePollFindsIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *place) {
		const poll = time.Second
		x := startProxy(t, p.URL)
		p.start(t, "a", with(func(s *relay.Settings) { s.Poll = poll }), func(config *relay.Config) {
			config.ListenDatabase = x.url(t, named(t, p.URL, p.Schema))
		})
		eventually(t, "the listener", func() bool {
			return p.Count(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%'", p.Schema) == 1
		})
		x.refuse() // and does not get back
		eventually(t, "nobody who listens", func() bool {
			return p.Count(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", p.Schema) == 0
		})
		for n := 1; n <= 4; n++ {
			p.emit(t, placed.New("1", note{N: n}))
			p.Exec(t, "SELECT {schema}.outbox_wake()") // which nobody hears
			took := within(t, 20*time.Second, "the delivery", func() bool { return len(p.broker.took("1")) == n })
			if took > poll+2*time.Second {
				t.Errorf("found after %s, the poll is %s", took, poll)
			}
		}
		p.wantDelivered(t)
	})
}
