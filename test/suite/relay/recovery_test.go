package relay

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// ways are how a relay reaches its database.
var ways = []string{"direct", "pooled"}

// path is how the relays of a test reach their database, which may be another one after a failover.
type path struct {
	*proxy.Proxy
	pooler *server.Server // nil: there is none
}

func newPath(t *testing.T, way string, c *cluster.Cluster) *path {
	t.Helper()
	w := &path{Proxy: proxy.New(t, c.URL())}
	if way == "pooled" {
		pooler, err := server.NewPooler(t.TempDir(), w.Address())
		must(t, err)
		t.Cleanup(pooler.Close)
		must(t, pooler.Start(t.Context()))
		w.pooler = pooler
	}
	return w
}

// taken leads a relay that way.
func (w *path) taken(t *testing.T) func(*relay.Config) {
	t.Helper()
	if w.pooler == nil {
		return through(t, w.Proxy)
	}
	return func(config *relay.Config) {
		config.Database = "postgres://postgres@" + w.pooler.Address + "/postgres?sslmode=disable&default_query_exec_mode=exec"
		config.ListenDatabase = "off"
	}
}

// lead leads to another server. Behind the pooler no call fails: those that come meanwhile wait.
func (w *path) lead(t *testing.T, promote func() *cluster.Cluster) {
	t.Helper()
	if w.pooler != nil {
		must(t, w.pooler.Execute(t.Context(), "PAUSE"))
	}
	w.Block()
	w.Lead(t, promote().URL())
	w.Heal()
	if w.pooler != nil {
		must(t, w.pooler.Execute(t.Context(), "RESUME"))
	}
}

// serverStarts are when the postmaster was started, and when the statistics were set anew.
func serverStarts(t *testing.T, c *cluster.Cluster) (started, reset string) {
	t.Helper()
	eventually.True(t, "the server answers", func() bool {
		text, err := c.Text(t.Context(),
			"SELECT concat(pg_postmaster_start_time(), '|', pg_stat_get_bgwriter_stat_reset_time())")
		started, reset, _ = strings.Cut(text, "|")
		return err == nil
	})
	return started, reset
}

// killBackend kills a session's process, and waits until the server has recovered. Behind the pooler no call fails.
func (w *path) killBackend(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if w.pooler != nil {
		must(t, w.pooler.Execute(t.Context(), "PAUSE"))
		defer func() { must(t, w.pooler.Execute(t.Context(), "RESUME")) }()
	}
	_, before := serverStarts(t, c)
	victim, err := pgx.Connect(t.Context(), c.URL())
	must(t, err)
	must(t, syscall.Kill(int(victim.PgConn().PID()), syscall.SIGKILL))
	eventually.True(t, "the server has recovered", func() bool {
		_, reset := serverStarts(t, c)
		return reset != before
	})
	_ = victim.Close(t.Context())
}

// A recovery after a killed backend keeps the time of the postmaster's start, and sets the statistics anew: the
// incarnation has both.
func TestARecoveryIsAnotherIncarnation(t *testing.T) {
	t.Parallel()
	for _, major := range []int{15, 18} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, cluster.Config{Major: major})
			started, reset := serverStarts(t, c)
			(&path{}).killBackend(t, c)
			again, anew := serverStarts(t, c)
			if again != started || anew == reset || reset == "" || anew == "" {
				t.Errorf("started %s and then %s, statistics of %q and then %q", started, again, reset, anew)
			}
		})
	}
}

// renewedOften lets renewals, and with them floors, be written every few seconds.
var renewedOften = with(func(s *relay.Settings) { s.Lease = 15 * time.Second })

// awaitRenewals waits until the lanes were renewed so often.
func (p *env) awaitRenewals(t *testing.T, n int) {
	t.Helper()
	for range n {
		var before string
		must(t, p.Pool.QueryRow(t.Context(),
			p.SQL("SELECT min(lease_until)::text FROM {schema}.outbox_lane_status")).Scan(&before))
		eventually.True(t, "a renewal", func() bool {
			return p.Count(t, "SELECT count(*) FROM {schema}.outbox_lane_status WHERE lease_until > $1::text::timestamptz",
				before) == 64
		})
	}
}

// A transaction that was prepared before a recovery, and commits long after it, has its events published.
func TestPreparedWritersOutliveARecovery(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, cluster.Config{})
			p := at(t, c, true)
			way := newPath(t, way, c)
			p.start(t, "relay", way.taken(t), renewedOften)
			p.emit(t, placed.New("1", note{}))
			p.awaitPublished(t, 1)
			writer, err := pgx.Connect(t.Context(), c.URL())
			must(t, err)
			defer func() { _ = writer.Close(t.Context()) }()
			tx, err := writer.Begin(t.Context())
			must(t, err)
			late := placed.New("prepared", note{})
			late.ID = outbox.NewID()
			_, err = outbox.Emit(t.Context(), outbox.InSchema(tx, p.Schema), late)
			must(t, err)
			_, err = writer.Exec(t.Context(), "PREPARE TRANSACTION 'late'")
			must(t, err)
			p.emit(t, placed.New("2", note{})) // the relay has listed the writer by the time that this is out
			p.awaitPublished(t, 2)
			p.awaitRenewals(t, 1)
			way.killBackend(t, c)
			p.Pool.Reset()
			for i := range 10 {
				p.emit(t, placed.New(fmt.Sprint(i), note{}))
				p.awaitPublished(t, 3+i)
			}
			p.awaitRenewals(t, 2) // the floors are written
			must(t, c.Exec(t.Context(), "COMMIT PREPARED 'late'"))
			p.awaitPublished(t, 13)
			sent := p.broker.of(late.ID)
			if len(sent) == 0 {
				t.Error("the event of the prepared transaction was not sent")
			}
			for _, again := range sent[min(1, len(sent)):] { // after a machine stood still for as long as a lease
				if !again.Redelivered {
					t.Error("the event of the prepared transaction was sent twice, and the second does not say so")
				}
			}
			if strings.Contains(p.logs.text(), "below the lane's floor") {
				t.Error("it was found below the floor")
			}
		})
	}
}

// A standby that lacks the last settles and floors is promoted. What is written there has numbers that the relay has
// seen before, with other events, and is published in order.
func TestALaggingStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			primary := newCluster(t, cluster.Config{})
			standby, err := primary.Standby(t.Context(), "behind")
			must(t, err)
			t.Cleanup(func() { ended(t, standby) })
			p := at(t, primary, true)
			way := newPath(t, way, primary)
			p.start(t, "relay", way.taken(t), renewedOften)
			p.emit(t, placed.New("1", note{N: 1}))
			p.awaitPublished(t, 1)
			must(t, primary.Exec(t.Context(), "CREATE TABLE here ()"))
			eventually.True(t, "the standby has all of it", func() bool {
				has, err := standby.Text(t.Context(), "to_regclass('here') IS NOT NULL")
				return err == nil && has == "true"
			})
			must(t, standby.Detach(t.Context()))
			for i := range 100 {
				p.emit(t, placed.New("gone", note{N: i}))
			}
			p.awaitPublished(t, 101)
			p.awaitRenewals(t, 2) // the floors are above them
			way.lead(t, func() *cluster.Cluster {
				must(t, primary.Kill(t.Context()))
				must(t, standby.Promote(t.Context()))
				return standby
			})
			q := at(t, standby, false)
			for i := range 50 {
				q.emit(t, placed.New("1", note{N: 2 + i}))
			}
			q.awaitPublished(t, 51)
			if got := p.broker.took("1"); slices.Max(got) != 51 || len(p.broker.outOfOrder()) > 0 {
				t.Errorf("the broker took %v", got)
			}
			if strings.Contains(p.logs.text(), "below the lane's floor") {
				t.Error("events were found below the floor")
			}
		})
	}
}
