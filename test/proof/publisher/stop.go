package publisher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture/proxy"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Stops is how much proof-drain-stop does.
type Stops struct {
	// Binary is outbox-publisher as it was built.
	Binary string
	// Postgres and NATS are the servers; Folder takes histories and logs.
	Postgres, NATS, Folder string
	// Rounds is how many publishers are stopped in the middle of their work, two running at a time, while at least
	// Waiting events wait, of so many Aggregates.
	Rounds, Waiting, Aggregates int
	// Slow is how much later than it could the broker answers, and AtATime how many publishes each publisher has in
	// flight: fewer than there are events, so that there is always something to do.
	Slow    time.Duration
	AtATime int
	// Limit is how long a stop may take: the publishers' drain time.
	Limit time.Duration
	// Environment is added to the programs'.
	Environment []string
}

// LongStops is the whole proof.
func LongStops() Stops {
	return Stops{Rounds: 100, Waiting: 2500, Aggregates: 500, Slow: 400 * time.Millisecond, AtATime: 32, Limit: stopTime}
}

// ShortStops is the form for every change.
func ShortStops() Stops {
	s := LongStops()
	s.Rounds = 10
	return s
}

// publishers are how many run at a time.
const publishers = 2

// stops is a run under way.
type stops struct {
	*env
	plan   Stops
	way    *proxy.Proxy
	starts int
	slots  [publishers]*Program
	names  [publishers]string
	copies *copies
	report *StopReport
	sayf   func(format string, args ...any)
}

// StopAll stops publishers under load, round after round, and checks what came of it.
func StopAll(ctx context.Context, plan Stops, say io.Writer) (_ *StopReport, err error) {
	began := time.Now()
	s := &stops{plan: plan, report: &StopReport{plan: plan}, sayf: func(format string, args ...any) {
		// An error here is of no consequence.
		_, _ = fmt.Fprintf(say, "proof-drain-stop: %5.1f s: %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}}
	if s.env, err = newEnv(ctx, plan.Folder, plan.Postgres, plan.NATS, plan.Aggregates); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.env.close()) }()
	server, err := serverOf(plan.NATS)
	if err != nil {
		return nil, err
	}
	if s.way, err = proxy.Listen(server); err != nil {
		return nil, err
	}
	defer s.way.Close()
	s.way.Slow(plan.Slow)
	if s.copies, err = overhear(plan.NATS, s.torture.Run+".>"); err != nil {
		return nil, err
	}
	defer s.copies.close()
	defer func() {
		for _, p := range s.slots {
			if p != nil {
				p.Kill()
			}
		}
	}()
	if err := s.play(ctx); err != nil {
		return nil, err
	}
	s.report.Seconds = time.Since(began).Seconds()
	return s.report, nil
}

func (s *stops) play(ctx context.Context) error {
	if err := s.producers.Write(ctx, s.plan.Waiting, 0); err != nil { // the first publishers have enough to do, too
		return err
	}
	for slot := range s.slots {
		if err := s.start(ctx, slot); err != nil {
			return err
		}
	}
	if err := s.rounds(ctx); err != nil {
		return err
	}
	s.way.Slow(0)
	r := s.report
	var err error
	if r.Drained, err = s.drain(ctx, eventually.Patience, s.alive); err != nil {
		return err
	}
	for slot := range s.slots {
		if _, err := s.slots[slot].Stop(s.plan.Limit + killAfter); err != nil {
			return err
		}
	}
	r.Verdict, err = s.examine(ctx, r.Drained, check.Floor{
		Committed: max(s.plan.Waiting, s.plan.Rounds*50), OrderedAggregates: 100,
	})
	if err != nil {
		return err
	}
	if r.Sent, r.Copies, err = s.copies.count(ctx, r.Verdict.Count(check.DeliveredDistinct)); err != nil {
		return err
	}
	if err := s.witnessed(ctx); err != nil { // once more: by now somebody has every lane
		return err
	}
	for _, stop := range r.Stops {
		s.sayf("%s gave back %d lanes, the last was nobody's for %d ms, and settled %d events first", stop.Name, stop.Given,
			stop.Gap.Milliseconds(), stop.Settled)
	}
	return nil
}

// killAfter is how much longer than it may a stop can take before the process is killed.
const killAfter = 30 * time.Second

// start starts a new process of a publisher in the slot, under a name that no other has.
func (s *stops) start(ctx context.Context, slot int) (err error) {
	s.starts++
	name := fmt.Sprintf("publisher-%d", s.starts)
	address, err := s.way.Through(s.plan.NATS)
	if err != nil {
		return err
	}
	environment := append(settings(s.env),
		"POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL="+address, "POSTHASTE_RELAY_NAME="+name,
		"POSTHASTE_RELAY_DRAIN="+s.plan.Limit.String(),
		fmt.Sprintf("POSTHASTE_RELAY_CONCURRENCY=%d", s.plan.AtATime))
	s.names[slot] = name
	s.slots[slot], err = StartProgram(ctx, s.plan.Binary, filepath.Join(s.folder, name+".log"),
		append(environment, s.plan.Environment...))
	return err
}

// alive tells whether a publisher is left.
func (s *stops) alive() bool {
	return slices.ContainsFunc(s.slots[:], func(p *Program) bool { return p.Alive() })
}

// rounds stops one publisher after the other while producers write, until enough were in the middle of their work. One
// that is not is bad luck, and that a third of them are not is none.
func (s *stops) rounds(ctx context.Context) error {
	ctx, enough := s.env.withWork(ctx, s.plan.Waiting)
	defer enough()
	for round := range s.plan.Rounds * 3 / 2 {
		if round >= s.plan.Rounds {
			if err := s.witnessed(ctx); err != nil || s.report.busy() >= s.plan.Rounds {
				return err
			}
		}
		if err := s.round(ctx, round, round%publishers); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return nil
}

// round stops the publisher of a slot as soon as it has lanes and work, and starts another in its place.
func (s *stops) round(ctx context.Context, round, slot int) error {
	if err := s.busy(ctx, slot); err != nil {
		return err
	}
	stop := Stop{Name: s.names[slot], At: time.Now()}
	var err error
	if stop.Took, err = s.slots[slot].Stop(s.plan.Limit + killAfter); err != nil {
		return err
	}
	stop.ExitCode = s.slots[slot].ExitCode()
	stop.Kept, err = s.count(ctx,
		"SELECT count(*) FROM {schema}.outbox_lanes l JOIN {schema}.torture_relays r ON r.id = l.owner WHERE r.name = $1",
		stop.Name)
	if err != nil {
		return err
	}
	s.report.Stops = append(s.report.Stops, stop)
	s.sayf("round %d: %s has stopped after %d ms with exit code %d", round+1, stop.Name, stop.Took.Milliseconds(),
		stop.ExitCode)
	return s.start(ctx, slot)
}

// working is what the publisher says of itself when it has lanes and events in flight.
var working = regexp.MustCompile(`[1-9][0-9]* lanes.*[^0-9][1-9][0-9]* events in flight`)

// busy waits until the publisher of a slot holds lanes and is in the middle of its work.
func (s *stops) busy(ctx context.Context, slot int) error {
	return eventually.Within(ctx, eventually.Patience, s.names[slot]+" has lanes and work", func() (bool, error) {
		if !s.slots[slot].Alive() {
			return true, fmt.Errorf("publisher: %s ended by itself with exit code %d", s.names[slot], s.slots[slot].ExitCode())
		}
		_, body := s.slots[slot].Fetch(ctx, http.MethodGet, "/readyz?verbose")
		return working.MatchString(body), nil
	})
}

// witnessed reads from the triggers' notes what each stop left to do, and how long its lanes were nobody's.
func (s *stops) witnessed(ctx context.Context) error {
	// What follows a lane that was given back is that somebody takes it.
	const query = `WITH stops AS (SELECT * FROM unnest($1::text[], $2::timestamptz[]) s (name, at)
		), leases AS (SELECT *, lead(at) OVER (PARTITION BY lane ORDER BY n) AS taken FROM {schema}.torture_leases
		), given AS (SELECT s.name, s.at AS signal, l.lane, l.at, l.taken FROM stops s JOIN {schema}.torture_relays r 
		USING (name) JOIN leases l ON l.old_owner = r.id
		  WHERE l.token IS NULL AND l.old_token IS NOT NULL AND l.at >= s.at
		), settled AS MATERIALIZED (SELECT e.lane, c.at
		  FROM {schema}.torture_changes c JOIN {schema}.outbox_events e ON e.id = c.event_id WHERE c.after = 6
		), finished AS (SELECT g.name, count(*) AS events FROM given g JOIN settled d ON d.lane = g.lane 
		AND d.at BETWEEN g.signal AND g.at GROUP BY g.name)
		SELECT g.name, count(*), coalesce(max(extract(epoch FROM taken - at)), 0)::float8, 
		count(*) FILTER (WHERE taken IS NULL), coalesce(max(f.events), 0)
		  FROM given g LEFT JOIN finished f USING (name) GROUP BY g.name`
	of := map[string]*Stop{}
	var names []string
	var signals []time.Time
	for i := range s.report.Stops {
		stop := &s.report.Stops[i]
		of[stop.Name], names, signals = stop, append(names, stop.Name), append(signals, stop.At)
	}
	rows, err := s.torture.Pool.Query(ctx, s.torture.SQL(query), names, signals)
	if err != nil {
		return fmt.Errorf("publisher: what the stops left: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var found Stop
		var gap float64
		if err := rows.Scan(&name, &found.Given, &gap, &found.Orphaned, &found.Settled); err != nil {
			return fmt.Errorf("publisher: what the stops left: %w", err)
		}
		stop := of[name]
		stop.Given, stop.Orphaned, stop.Settled, stop.Gap = found.Given, found.Orphaned, found.Settled,
			time.Duration(gap*float64(time.Second))
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("publisher: what the stops left: %w", err)
	}
	return nil
}

// copies overhears what is published, before JetStream drops what it knows already.
type copies struct {
	conn *nats.Conn
	sub  *nats.Subscription
	mu   sync.Mutex
	seen map[string]int
	sent int
}

func overhear(address, subjects string) (*copies, error) {
	conn, err := nats.Connect(address, nats.Timeout(eventually.Patience))
	if err != nil {
		return nil, fmt.Errorf("publisher: connect to NATS: %w", err)
	}
	c := &copies{conn: conn, seen: map[string]int{}}
	c.sub, err = conn.Subscribe(subjects, func(message *nats.Msg) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen[message.Header.Get("event_id")]++
		c.sent++
	})
	if err == nil {
		err = c.sub.SetPendingLimits(-1, -1)
	}
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("publisher: listen to NATS: %w", err)
	}
	return c, nil
}

// count is how many messages were sent, and how many of them were sent before. It waits for as many as were delivered.
func (c *copies) count(ctx context.Context, delivered int) (sent, again int, err error) {
	err = eventually.Within(ctx, eventually.Patience, "everything that was delivered was overheard", func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		sent, again = c.sent, c.sent-len(c.seen)
		return len(c.seen) >= delivered, nil
	})
	return sent, again, err
}

func (c *copies) close() { c.conn.Close() }
