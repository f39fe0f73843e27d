package failover

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/internal/torture/proxy"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// Async is what came of failovers to standbys that were behind.
type Async struct {
	Report *torture.Report
	// Wanted is how many there were to be. Moved has, for each that was, the lanes whose floor the old primary had
	// above every number that the new one has given out.
	Wanted int
	Moved  []int
}

// floors is how many floors moved in all failovers.
func (a *Async) floors() (sum int) {
	for _, n := range a.Moved {
		sum += n
	}
	return sum
}

// none leaves out the events that are refused for good: what operators decided about them would be lost as well.
const none = -1

// asynchronous fails over again and again, each time to a standby that misses the last commits: those vanish, also
// where they were published. What the new primary has is delivered, and in order. One relay is behind a pooler that is
// paused meanwhile, so that none of its calls fails; all connections of the other break.
func (p *Proof) asynchronous(ctx context.Context) (_ *Async, err error) {
	plan, err := p.plan("asynchronous", "", p.size(4000, 2000), time.Duration(p.size(10, 5))*time.Second)
	if err != nil {
		return nil, err
	}
	s, err := newSuccession(ctx, plan.Folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	plan.Postgres, plan.RelaysVia, plan.RelaysListen = through(s.all.Addr()), through(s.relays.Addr()),
		through(s.relays.Addr())
	plan.FirstVia = through(s.pooler.Address) + "&default_query_exec_mode=exec"
	// Nobody shall lose a lane because it waited for the new primary: who has one still, believes what it knows of it.
	plan.Lease = 12 * time.Second
	plan.Forgetful, plan.Doomed, plan.Durable = true, none, func(key string) bool { return s.durable[key] }
	a := &Async{Wanted: p.size(5, 2)}
	inject := func(ctx context.Context, on *torture.Target) (check.Fault, error) {
		if len(a.Moved) >= a.Wanted {
			return check.Fault{}, torture.ErrMissed
		}
		moved, fault, err := s.failOver(context.WithoutCancel(ctx), on)
		a.Moved = append(a.Moved, moved)
		return fault, err
	}
	plan.Schedule = []torture.Fault{
		{Kind: check.DatabaseDown, Every: 800 * time.Millisecond, Least: a.Wanted, Inject: inject},
	}
	if a.Report, err = torture.Run(ctx, plan, p); err != nil {
		return nil, err
	}
	// What the new primary numbers again must not be taken for known.
	late, err := said(plan.Folder, "below the lane's floor")
	if late > 0 {
		a.Report.Problems = append(a.Report.Problems, fmt.Sprintf("%d alarms about events below the floor", late))
	}
	return a, err
}

// succession is a primary, the ways to it, and what those before it had committed.
type succession struct {
	primary     *cluster.Cluster
	heirs       int
	all, relays *proxy.Proxy // of producers and the proof, and of relays
	pooler      *server.Server
	durable     map[string]bool
}

func newSuccession(ctx context.Context, folder string) (_ *succession, err error) {
	s := &succession{durable: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.primary, err = cluster.New(ctx, cluster.Config{}); err != nil {
		return nil, err
	}
	for _, way := range []**proxy.Proxy{&s.all, &s.relays} {
		if *way, err = proxy.Listen(address(s.primary)); err != nil {
			return nil, err
		}
	}
	if s.pooler, err = server.NewPooler(filepath.Clean(folder), s.relays.Addr()); err != nil {
		return nil, err
	}
	return s, s.pooler.Start(ctx)
}

func (s *succession) close() error {
	s.pooler.Close()
	for _, way := range []*proxy.Proxy{s.all, s.relays} {
		if way != nil {
			way.Close()
		}
	}
	if s.primary == nil {
		return nil
	}
	return s.primary.Close()
}

func address(c *cluster.Cluster) string { return "127.0.0.1:" + strconv.Itoa(c.Port()) }

func through(at string) string {
	return "postgres://postgres@" + at + "/postgres?sslmode=disable&connect_timeout=5"
}

// failOver makes a standby, lets it fall behind until floors have moved, and puts it in the primary's place. It tells
// how many floors moved. Relays see the new primary when it has both numbers below these floors and numbers above.
func (s *succession) failOver(ctx context.Context, on *torture.Target) (moved int, fault check.Fault, err error) {
	s.heirs++
	heir, err := s.primary.Standby(ctx, fmt.Sprintf("heir%d", s.heirs))
	if err != nil {
		return 0, fault, err
	}
	fault.From = time.Now().UnixMicro() // what was settled after this is lost as well, and comes again
	g, err := s.fallBehind(ctx, on, heir)
	if err == nil {
		err = s.pooler.Execute(ctx, "PAUSE")
	}
	if err == nil {
		err = g.look(ctx, s.primary, on)
	}
	if err == nil {
		err = s.primary.Kill(ctx)
	}
	if err != nil {
		return 0, fault, errors.Join(err, heir.Close())
	}
	former := s.primary
	s.relays.Block()
	s.primary = heir
	err = heir.Promote(ctx)
	s.all.Lead(address(heir))
	s.relays.Lead(address(heir))
	if err == nil {
		err = g.straddle(ctx, heir, on)
	}
	s.relays.Admit()
	err = errors.Join(err, s.pooler.Execute(ctx, "RESUME"))
	fault.To = time.Now().UnixMicro()
	return g.moved, fault, errors.Join(err, s.readDurable(ctx, former, on))
}

// fallBehind lets the standby miss what is committed, until enough of that is published and floors have moved past it.
func (s *succession) fallBehind(ctx context.Context, on *torture.Target, heir *cluster.Cluster) (*gap, error) {
	g := &gap{}
	if err := heir.Detach(ctx); err != nil {
		return g, err
	}
	err := eventually.Within(ctx, eventually.Patience, "the standby has applied what it received", func() (bool, error) {
		done, err := heir.Text(ctx, applied)
		return done == "true", err
	})
	if err != nil {
		return g, err
	}
	if g.from, err = number(ctx, heir, on.Env.SQL(lastNumber)); err != nil {
		return g, err
	}
	return g, eventually.Within(ctx, eventually.Patience, "floors are past what the standby has", func() (bool, error) {
		const above = "SELECT count(*) FROM {schema}.outbox_events WHERE state = 6 AND seq > $1"
		published, err := number(ctx, s.primary, on.Env.SQL(above), g.from)
		if err != nil || published < lostAtLeast {
			return false, err
		}
		const movers = "SELECT count(DISTINCT owner) FROM {schema}.outbox_lane_status WHERE floor > $1"
		owners, err := number(ctx, s.primary, on.Env.SQL(movers), g.from)
		if err != nil || owners < on.Plan.Relays {
			return false, err
		}
		// The new primary gives out the same numbers, to others: so many here are enough there, whoever gets them.
		below, err := number(ctx, s.primary, on.Env.SQL(belowFloors), g.from)
		return below >= 3*straddled, err
	})
}

// applied tells whether a standby that receives nothing has applied all that it can. The last record that it received
// may be there in part only.
const applied = `SELECT pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() OR EXISTS (
	SELECT FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'RecoveryRetrieveRetryInterval')`

// belowFloors counts the aggregates, by type, with events that the standby misses and that are below their lane's
// floor.
const belowFloors = `SELECT count(*) FROM (
	SELECT FROM {schema}.outbox_events e JOIN {schema}.outbox_lane_status l
		ON l.lane = e.lane
	WHERE e.seq > $1 AND e.seq <= l.floor AND e.aggregate_id LIKE 'thing-%'
	GROUP BY e.aggregate_id, e.event_type) b`

// lostAtLeast is how many events the standby must miss that the old primary's relays have published.
const lostAtLeast = 20

// lastNumber is the last that the sequence of events has given out.
const lastNumber = "SELECT last_value FROM {schema}.outbox_events_seq_seq"

// gap is what a standby misses: the numbers from its own last one up to that of the primary.
type gap struct {
	from, to int
	floors   string // of all lanes on the old primary, as JSON
	moved    int    // how many of them are above from
}

// look reads the gap from the primary that is about to end.
func (g *gap) look(ctx context.Context, primary *cluster.Cluster, on *torture.Target) (err error) {
	const floors = "SELECT json_object_agg(lane, floor) FROM {schema}.outbox_lane_status"
	if g.floors, err = primary.Text(ctx, on.Env.SQL(floors)); err != nil {
		return err
	}
	const moved = "SELECT count(*) FROM {schema}.outbox_lane_status WHERE floor > $1"
	if g.moved, err = number(ctx, primary, on.Env.SQL(moved), g.from); err != nil {
		return err
	}
	g.to, err = number(ctx, primary, on.Env.SQL(lastNumber))
	return err
}

// straddled is how many aggregates must have events on either side of the old floors.
const straddled = 10

// straddle returns when the new primary has given out numbers that the old one's floors are above, and numbers that
// its relays have never seen, to events of the same aggregates: whoever begins to read at an old floor finds the later
// ones first.
func (g *gap) straddle(ctx context.Context, heir *cluster.Cluster, on *torture.Target) error {
	below := func(than string) func() (bool, error) {
		query := on.Env.SQL(`SELECT count(*) FROM (
			SELECT FROM {schema}.outbox_events e JOIN json_each_text($1::text::json) f
				ON f.key::smallint = e.lane
			WHERE e.seq > $2::text::bigint AND e.state = 0 AND e.aggregate_id LIKE 'thing-%'
			GROUP BY e.aggregate_id, e.event_type HAVING min(e.seq) <= min(f.value::bigint)` + than + `) s`)
		return func() (bool, error) {
			found, err := number(ctx, heir, query, g.floors, strconv.Itoa(g.from))
			return found >= straddled, err
		}
	}
	if err := eventually.Within(ctx, eventually.Patience, "events have numbers below the old floors", below("")); err !=
		nil {
		return err
	}
	// As transactions do that roll back. The old primary has given out a few more since it was looked at.
	const more = 10000
	err := heir.Exec(ctx, on.Env.SQL("SELECT setval('{schema}.outbox_events_seq_seq', $1::bigint)"), g.to+more)
	if err != nil {
		return err
	}
	andAbove := below(fmt.Sprintf(" AND max(e.seq) > %d", g.to+more))
	return eventually.Within(ctx, eventually.Patience, "others have numbers that no relay has seen", andAbove)
}

// readDurable reads what a primary had committed that was killed, and that nobody else reaches any more.
func (s *succession) readDurable(ctx context.Context, former *cluster.Cluster, on *torture.Target) error {
	err := former.Start(ctx)
	if err == nil {
		var keys string
		keys, err = former.Text(ctx, on.Env.SQL("SELECT coalesce(string_agg(key, ' '), '') FROM {schema}.torture_done"))
		for key := range strings.FieldsSeq(keys) {
			s.durable[key] = true
		}
	}
	return errors.Join(err, former.Close())
}
