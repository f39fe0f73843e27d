package relay

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// at is an outbox on a cluster of the test's own.
func at(t *testing.T, c *cluster.Cluster, migrate bool) *env {
	t.Helper()
	db := &pgtest.DB{Server: pgtest.Server{Name: "own", URL: c.URL()}, Schema: "public"}
	if migrate {
		if err := schema.Outbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", c.URL()),
			schema.Options{Schema: "public"}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if db.Pool, err = pgxpool.New(t.Context(), c.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Pool.Close)
	p := &env{DB: db, broker: newBroker(), logs: &logs{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the relays logged:\n%s", p.logs.tail(8000))
		}
	})
	return p
}

func newCluster(t *testing.T, config cluster.Config) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ended(t, c) })
	return c
}

func ended(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantPaused waits until the relay is paused, and checks that it does nothing else.
func (p *env) wantPaused(t *testing.T, r *run, wouldSend int64) {
	t.Helper()
	eventually.True(t, "a pause", func() bool { return r.RestoreHold() != nil })
	if got := r.RestoreHold().WouldSend(); got != wouldSend {
		t.Errorf("it would send %d events, want %d: %+v", got, wouldSend, r.RestoreHold())
	}
	if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_lane_status WHERE owner_name = $1 AND lease_until > now()",
		r.name); n > 0 {
		t.Errorf("paused, it holds %d lanes", n)
	}
	if n := p.broker.countOf(r.name); n > 0 {
		t.Errorf("paused, it published %d events", n)
	}
}

func (p *env) resume(t *testing.T) {
	t.Helper()
	action := operator.Action{ID: outbox.NewID(), Actor: "ada", Reason: "restored on purpose"}
	outcome, err := operator.New(p.Pool, p.Schema).Resume(t.Context(), action, operator.RestoredScope)
	if err != nil || outcome != operator.Done {
		t.Fatalf("resume: %q, %v", outcome, err)
	}
}

// R14: relays that start on a restored database are paused, say what they would send, and go on, all of them, when
// somebody says so.
func TestFaultR14ARestoredDatabaseIsPaused(t *testing.T) {
	t.Parallel()
	primary := newCluster(t, cluster.Config{Archive: true})
	before := at(t, primary, true)
	before.emit(t, placed.New("1", note{}), placed.New("2", note{}))
	old := before.start(t, "old")
	before.awaitPublished(t, 2)
	must(t, old.stop(t))
	backup, err := primary.Backup(t.Context())
	must(t, err)
	pending := before.emit(t, placed.New("3", note{}), billed.New("3", note{}), billed.New("4", note{}))
	must(t, primary.Point(t.Context(), "here"))
	before.emit(t, placed.New("5", note{}))

	restored, err := backup.Restore(t.Context(), "here")
	must(t, err)
	t.Cleanup(func() { ended(t, restored) })
	p := at(t, restored, false)
	soon := with(func(s *relay.Settings) { s.FailoverWindow = time.Second })
	eventually.True(t, "an old sign of life", func() bool {
		return p.Count(t, "SELECT count(*) FROM {schema}.outbox_identity WHERE seen_at < now() - interval '1 s'") == 1
	})
	a, b := p.start(t, "a", soon), p.start(t, "b", soon)
	p.wantPaused(t, a, 3)
	p.wantPaused(t, b, 3)
	for _, line := range p.logs.lines(t, "msg", "paused: the database was restored or copied") {
		said, _ := line["pending"].(string)
		if !strings.Contains(said, "order_placed (orders): 1 ready") ||
			!strings.Contains(said, "order_billed (bills): 2 ready") ||
			!strings.Contains(line["reason"].(string), "timeline 2") || line["would_send"] != 3.0 {
			t.Errorf("it said %v", line)
		}
	}
	p.resume(t)
	eventually.True(t, "both go on", func() bool { return a.RestoreHold() == nil && b.RestoreHold() == nil })
	p.awaitPublished(t, 5)
	for _, id := range pending {
		if p.broker.tries[id] != 1 {
			t.Errorf("event %s was sent %d times", id, p.broker.tries[id])
		}
	}
	if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_actions a, {schema}.outbox_meta m WHERE a.verb = 'resume' "+
		"AND a.actor = 'ada' AND a.event_id = m.installation"); n != 1 {
		t.Errorf("the log has %d rows about it", n)
	}
}

// R14: a dump that is read into another cluster is paused, however fresh it is.
func TestFaultR14ADumpInAnotherClusterIsPaused(t *testing.T) {
	t.Parallel()
	from, to := newCluster(t, cluster.Config{}), newCluster(t, cluster.Config{})
	before := at(t, from, true)
	r := before.start(t, "old")
	before.emit(t, placed.New("1", note{}))
	before.awaitPublished(t, 1)
	must(t, r.stop(t))
	before.emit(t, placed.New("1", note{}))
	dump, err := from.Run(t.Context(), "pg_dump", "--inserts")
	must(t, err)
	must(t, to.Exec(t.Context(), "DROP SCHEMA public"))
	must(t, to.Exec(t.Context(), "CREATE SCHEMA public;"+onlySQL(dump)))
	p := at(t, to, false)
	a := p.start(t, "a")
	p.wantPaused(t, a, 1)
	p.resume(t)
	p.awaitPublished(t, 2)
}

// onlySQL leaves out what is meant for psql alone.
func onlySQL(dump string) string {
	var lines []string
	copying := false
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, `\restrict`) || strings.HasPrefix(line, `\unrestrict`) {
			continue
		}
		copying = copying || strings.HasPrefix(line, "COPY ")
		lines = append(lines, line)
	}
	if copying {
		panic("use pg_dump --inserts")
	}
	return strings.Join(lines, "")
}

// changeIdentity makes the database look as if it had been somewhere else until so long ago.
func (p *env) changeIdentity(t testing.TB, change, ago string) {
	t.Helper()
	p.Exec(t, "UPDATE {schema}.outbox_identity SET "+change+", seen_at = now() - $1::text::interval", ago)
}

// R14: what pauses and what does not, on every version: the facts are put into the row.
func TestFaultR14WhatPauses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		first := p.start(t, "first")
		p.emit(t, placed.New("1", note{}))
		p.awaitPublished(t, 1)
		must(t, first.stop(t))
		p.emit(t, placed.New("1", note{N: 1}))

		p.changeIdentity(t, "system_identifier = system_identifier + 1", "0")
		copied := p.start(t, "copied")
		p.wantPaused(t, copied, 1)
		p.resume(t)
		p.awaitPublished(t, 2)
		must(t, copied.stop(t))

		p.emit(t, placed.New("1", note{N: 2}))
		p.changeIdentity(t, "timeline = timeline + 7", "11 minutes")
		restored := p.start(t, "restored")
		p.wantPaused(t, restored, 1)
		never := p.start(t, "never pauses", with(func(s *relay.Settings) { s.FailoverWindow = -1 }))
		p.awaitPublished(t, 3)
		eventually.True(t, "the other goes on as well", func() bool { return restored.RestoreHold() == nil })
		must(t, never.stop(t))
		must(t, restored.stop(t))

		p.emit(t, placed.New("1", note{N: 3}))
		p.changeIdentity(t, "timeline = timeline + 7", "9 minutes")
		p.start(t, "failed over")
		p.awaitPublished(t, 4)
		if lines := p.logs.lines(t, "msg", "the database has failed over"); len(lines) == 0 {
			t.Error("nobody said that it failed over")
		}
		p.wantDelivered(t)
	})
}

// R14: a relay that runs when its database is replaced pauses too, and goes on; after a failover it goes on by
// itself.
func TestFaultR14ARelayThatRunsLooksWhenItReconnects(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		a := p.start(t, p.Schema, with(func(s *relay.Settings) { s.Deadline = 2 * time.Second }))
		p.emit(t, placed.New("1", note{}))
		p.awaitPublished(t, 1)
		p.changeIdentity(t, "timeline = timeline + 1", "5 minutes")
		p.terminate(t, p.Schema)
		p.emit(t, placed.New("1", note{N: 1}))
		p.awaitPublished(t, 2)
		if a.RestoreHold() != nil || len(p.logs.lines(t, "msg", "the database has failed over")) != 1 {
			t.Errorf("after a failover: paused %+v", a.RestoreHold())
		}

		p.changeIdentity(t, "timeline = timeline + 1", "1 hour")
		p.terminate(t, p.Schema)
		eventually.True(t, "a pause", func() bool { return a.RestoreHold() != nil })
		p.emit(t, placed.New("1", note{N: 2}))
		if p.broker.count() != 2 {
			t.Error("it published while it was paused")
		}
		p.expire(t, p.Schema) // what it held before
		p.resume(t)
		p.awaitPublished(t, 3)
		p.wantInOrder(t)
	})
}

// R14: a fresh outbox, and a copy without any event, are adopted without a word.
func TestAnEmptyOutboxIsAdopted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		first := p.start(t, "first")
		eventually.True(t, "a home", func() bool { return p.Count(t, "SELECT count(*) FROM {schema}.outbox_identity") == 1 })
		must(t, first.stop(t))
		p.changeIdentity(t, "system_identifier = 1", "1 day")
		p.start(t, "a")
		eventually.True(t, "another home", func() bool {
			return p.Count(t, "SELECT count(*) FROM {schema}.outbox_identity WHERE system_identifier <> 1") == 1
		})
		p.emit(t, placed.New("1", note{}))
		p.awaitPublished(t, 1)
		if strings.Contains(p.logs.text(), "paused") {
			t.Error("it was paused")
		}
	})
}

// A role whose grants are older than the table is told what it misses, and works.
func TestARelayThatMayNotAskGoesOn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		name, asRole := p.role(t, "relay")
		p.Exec(t, "REVOKE ALL ON {schema}.outbox_identity FROM "+name)
		p.emit(t, placed.New("1", note{}))
		p.start(t, "a", asRole)
		p.awaitPublished(t, 1)
		if !strings.Contains(p.logs.text(), "a restored database will not be noticed") {
			t.Error("it did not say so")
		}
	})
}

// C21: a relay on a real standby says so, does not end, and works when that is promoted.
func TestFaultC21AStandbyIsNamedAndServedWhenPromoted(t *testing.T) {
	t.Parallel()
	primary := newCluster(t, cluster.Config{})
	before := at(t, primary, true)
	before.emit(t, placed.New("1", note{}))
	standby, err := primary.Standby(t.Context(), "second")
	must(t, err)
	t.Cleanup(func() { ended(t, standby) })
	p := at(t, standby, false)
	a := p.start(t, "a")
	eventually.True(t, "the standby's name in the log", func() bool {
		return strings.Contains(p.logs.text(), "the database is a standby")
	})
	select {
	case <-a.done:
		t.Fatalf("it gave up: %v", a.err)
	default:
	}
	must(t, primary.Stop(t.Context(), cluster.Fast))
	must(t, standby.Promote(t.Context()))
	p.awaitPublished(t, 1)
	p.wantDelivered(t)
}
