package relay

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/listen"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// connections is how many the relay uses at once: reading, settling, the fence, leases, the barrier and what
// is held each have one call under way at most.
const connections = 6

// Run moves events until the context ends; then it finishes what is in flight, gives its lanes back and
// returns nil. It survives every outage of the database and the broker; it returns an error only for
// what a restart would not repair.
func (r *Relay) Run(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(r.config.Database)
	if err != nil {
		return errors.New("relay: Database: not a URL that PostgreSQL clients understand") // without the URL: it may hold a password
	}
	config.MaxConns = connections
	pgstore.Configure(config, r.config.Lease)
	// What runs when the context ends must still be able to settle, so nothing below hangs on it.
	work, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	pool, err := pgxpool.NewWithConfig(work, config)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer pool.Close()
	s := &shell{
		relay: r, store: pgstore.New(pool, r.config.Schema), clock: newClock(), work: work,
		tells: make(chan func(time.Duration), 64), results: make(chan result, r.config.Concurrency), bell: make(chan struct{}, 1),
	}
	if err := s.checkSchema(ctx, pool); err != nil {
		return err
	}
	s.prepare()
	defer s.running.Wait()
	defer giveUp()
	s.listen(ctx)
	s.loop(ctx.Done()) //nolint:contextcheck // what the loop starts outlives ctx, so that it can be settled
	return nil
}

// shell does what the core decides: it makes the calls, publishes, keeps the time, and tells the core what
// came of it. All calls of the core are made by loop.
type shell struct {
	relay   *Relay
	store   core.Store
	core    *core.Core
	clock   *clock
	sender  *sender
	work    context.Context //nolint:containedctx // the life of everything the shell starts
	running sync.WaitGroup
	tells   chan func(time.Duration)
	results chan result
	bell    chan struct{}
}

// result is what a publish came to.
type result struct {
	publish *core.Publish
	outcome core.Outcome
}

// prepare makes the core and what publishes for it.
func (s *shell) prepare() {
	config := &s.relay.config
	s.sender = newSender(s.work, config, s.clock, &s.running, s.results)
	s.core = core.New(core.Config{
		Relay: s.relay.id, Name: config.Name, Version: config.Version, Routes: newRoutes(config.Registry),
		Batch: config.Batch, MaxInFlight: config.MaxInFlight, MaxBytes: config.MaxBytes, Concurrency: config.Concurrency, Depth: s.sender.depth(),
		MinPoll: min(minPoll, config.Poll), Poll: config.Poll, FencePeriod: fencePeriod, HeldPeriod: heldPeriod, SweepPeriod: sweepPeriod,
		Lease: config.Lease, Deadline: config.Deadline, Margin: config.Lease / 30, Drain: config.Drain, MinStay: min(minStay, config.Lease),
		MaxAttempts: config.MaxAttempts, BaseDelay: config.BaseDelay, MaxDelay: config.MaxDelay, UnknownTypeMaxAge: config.UnknownTypeMaxAge,
		NoWatermark: config.NoWatermark, Random: cryptoRandom, Observe: s.observe,
	})
}

// mostInputs is how many answers one decision of the core takes in.
const mostInputs = 2048

// loop runs the core until it has stopped.
func (s *shell) loop(stop <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.clock.now()
		actions := s.core.Act(now)
		counts := s.core.Counts()
		s.relay.counts.Store(&counts)
		for _, call := range actions.Calls {
			s.call(call)
		}
		s.sender.send(actions.Publish)
		if actions.Stopped {
			return
		}
		timer.Reset(max(0, actions.Wake-now))
		select {
		case <-timer.C:
		case tell := <-s.tells:
			tell(s.clock.now())
		case done := <-s.results:
			s.core.Published(s.clock.now(), done.publish, done.outcome)
		case <-s.bell:
			s.core.Bell(s.clock.now())
		case <-stop:
			stop = nil
			s.core.Stop(s.clock.now())
		}
		s.takeMore()
	}
}

// takeMore takes in what else has been answered, so that one decision serves all of it.
func (s *shell) takeMore() {
	now := s.clock.now()
	for range mostInputs {
		select {
		case tell := <-s.tells:
			tell(now)
		case done := <-s.results:
			s.core.Published(now, done.publish, done.outcome)
		default:
			return
		}
	}
}

// call makes a call of the store. It may take a third of the lease: a server that hangs, for instance on a
// standby that does not answer, must not hold up the relay.
func (s *shell) call(call core.Call) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.work, s.relay.config.Lease/3)
		defer cancel()
		tell := call.Run(ctx, s.store)
		select {
		case s.tells <- tell:
		case <-s.work.Done():
		}
	})
}

// listen rings the core's bell when somebody rings the outbox's.
func (s *shell) listen(ctx context.Context) {
	config := &s.relay.config
	if config.ListenDatabase == "off" {
		return
	}
	connect := func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, config.ListenDatabase) }
	ctx, cancel := context.WithCancel(ctx)
	s.running.Go(func() {
		defer cancel()
		listen.Listen(ctx, connect, config.Schema, func() {
			select {
			case s.bell <- struct{}{}:
			default: // it is rung already
			}
		})
	})
}

// clock tells the time since it was made, by the monotonic clock or the wall's, whichever says more: the
// monotonic one stands still while a machine is suspended, and leases do not. It never goes back.
type clock struct {
	start time.Time
	last  atomic.Int64
}

func newClock() *clock { return &clock{start: time.Now()} }

func (c *clock) now() time.Duration {
	t := time.Now()
	elapsed := max(t.Sub(c.start), t.Round(0).Sub(c.start.Round(0))) // Round strips the monotonic reading
	for {
		last := c.last.Load()
		if int64(elapsed) <= last {
			return time.Duration(last)
		}
		if c.last.CompareAndSwap(last, int64(elapsed)) {
			return elapsed
		}
	}
}

// cryptoRandom is chance that nobody can foresee: tokens are made of it.
func cryptoRandom() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails: it ends the program instead
	return binary.LittleEndian.Uint64(b[:])
}
