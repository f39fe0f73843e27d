package relay

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/internal/measure"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/listen"
	"github.com/posthaste-dev/posthaste/relay/internal/minutes"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
	"github.com/posthaste-dev/posthaste/relay/survey"
)

// The connections that the relay uses at once, at most. Leases and settles have their own: were they to wait for
// slow reads, the lanes would be lost.
const (
	leaseConnections = 5
	readConnections  = 6 // one of them for the survey
)

// Run moves events until the context ends; then it finishes what is in flight, gives its lanes back and
// returns nil. It survives every outage of the database and the broker; it returns an error only for
// what a restart would not repair.
func (r *Relay) Run(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(r.config.Database)
	if err != nil {
		// without the URL: it may hold a password
		return errors.New("relay: Database: not a URL that PostgreSQL clients understand")
	}
	config.MaxConns = leaseConnections
	config.BeforeConnect = r.config.BeforeConnect
	pgstore.Configure(config, r.config.Lease)
	identity := newDatabaseIdentity(&r.config)
	identity.guard(config)
	// what is in flight at the end is settled after ctx
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer pool.Close()
	reading := config.Copy()
	reading.MaxConns = readConnections
	readers, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), reading)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer readers.Close()
	if err := r.checkSchema(ctx, pool); err != nil {
		return err
	}
	surveying, stop := context.WithCancel(ctx)
	var survey sync.WaitGroup
	defer survey.Wait()
	defer stop()
	survey.Go(func() { r.survey.Run(surveying, readers) })
	var counter *minutes.Counter
	if r.config.SurveyEvery > 0 {
		counter = minutes.NewCounter(time.Now)
		writing, stop := context.WithCancel(context.WithoutCancel(ctx)) // what is settled at the end counts as well
		defer stop()
		survey.Go(func() { r.writeMinutes(writing, counter, readers) })
	}
	for ctx.Err() == nil {
		if err := r.awaitDatabase(ctx, identity, config.ConnConfig); err != nil {
			return err
		}
		r.moveEvents(ctx, identity, counter, pool, readers)
	}
	return nil
}

// writeMinutes writes down what each topic carries.
func (r *Relay) writeMinutes(ctx context.Context, counter *minutes.Counter, pool *pgxpool.Pool) {
	writer := &minutes.Writer{
		Counter: counter, Schema: r.config.Schema, Every: min(r.config.SurveyEvery, time.Minute), Logger: r.config.Logger,
		Waiting: func(since time.Time) (map[string]minutes.Waiting, bool) { return waitingIn(r.survey.Report(), since) },
	}
	writer.Run(ctx, pool)
}

// waitingIn is what waits by topic, if a survey has found that since then: while it fails, what it found before grows
// old.
func waitingIn(report survey.Report, since time.Time) (found map[string]minutes.Waiting, known bool) {
	for _, name := range []string{"ready", "held"} {
		part, may := report.Parts[name]
		if !may || part.Took == 0 || part.At.Before(since) { // Took: before its first answer it has none
			return nil, false
		}
	}
	found = map[string]minutes.Waiting{}
	for topic, count := range report.Topics {
		found[topic] = minutes.Waiting(count)
	}
	return found, true
}

// moveEvents moves events until the context ends, or the database turns out to be a restored one.
func (r *Relay) moveEvents(ctx context.Context, identity *databaseIdentity, counter *minutes.Counter,
	pool, readers *pgxpool.Pool,
) {
	if ctx.Err() != nil {
		return
	}
	// What runs when the context ends must still be able to settle, so nothing below hangs on it.
	work, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	s := &shell{
		relay: r, leases: &identityStore{
			Store: pgstore.New(pool, r.config.Schema), identity: identity, pool: pool, onPauses: r.applyPauses,
		},
		reads: &identityStore{Store: pgstore.New(readers, r.config.Schema), identity: identity, pool: readers},
		clock: newClock(), work: work, minutes: counter,
		answers: make(chan func(time.Duration), 64), results: make(chan result, r.config.Concurrency),
		bell: make(chan struct{}, 1),
	}
	s.prepare()
	r.paused.clear()
	defer s.wait()
	defer giveUp()
	s.listen(ctx)
	moved := identity.whenMoved()
	s.loop(ctx.Done(), moved) //nolint:contextcheck // what the loop starts outlives ctx, so that it can be settled
}

// shell does what the core decides: it makes the calls, publishes, keeps the time, and reports the
// results to the core. All calls of the core are made by loop.
type shell struct {
	relay   *Relay
	leases  core.Store // for leases and settles
	reads   core.Store // for all else
	core    *core.Core
	clock   *clock
	sender  *sender
	work    context.Context //nolint:containedctx // ends everything that the shell starts
	running sync.WaitGroup
	answers chan func(time.Duration)
	results chan result
	bell    chan struct{}
	minutes *minutes.Counter
	// acknowledged counts publishes, for the log.
	acknowledged int
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
		Name: config.Name, Version: config.Version, Routes: newCoreRegistry(config.Registry),
		Batch: config.Batch, Window: readWindow, HeldPage: heldPage,
		MaxInFlight: config.MaxInFlight, MaxBytes: config.MaxBytes,
		Concurrency: config.Concurrency,
		Depth:       s.sender.depth,
		MinPoll:     min(minPoll, config.Poll), Poll: config.Poll, FencePeriod: fencePeriod, HeldPeriod: heldPeriod,
		SweepPeriod: sweepPeriod,
		Lease:       config.Lease, Deadline: config.Deadline, Margin: config.margin(), Drain: config.Drain,
		MinStay:     min(minStay, config.Lease),
		MaxAttempts: config.MaxAttempts, BaseDelay: config.BaseDelay, MaxDelay: config.MaxDelay,
		UnknownTypeMaxAge: config.UnknownTypeMaxAge,
		NoWatermark:       measure.Of(s.work).NoWatermark, Random: cryptoRandom, Observe: s.observe,
		Arrived: s.minutes.Arrived,
	})
}

// wait lets what was started come to its end. A publisher that ignores its context is not waited for.
func (s *shell) wait() {
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(s.relay.config.Deadline)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		s.relay.config.Logger.ErrorContext(s.work, "the publisher does not return although its context has ended")
	}
}

// mostInputs is how many answers one decision of the core takes in.
const mostInputs = 2048

// loop runs the core until it has stopped, or the outbox has moved: then the core is dropped as it is, because nothing
// that it holds in memory is about that database.
func (s *shell) loop(stop, moved <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.clock.now()
		s.relay.pulse.beat()
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
		case apply := <-s.answers:
			apply(s.clock.now())
		case done := <-s.results:
			s.published(s.clock.now(), done)
		case <-s.bell:
			s.core.Bell(s.clock.now())
		case <-stop:
			stop = nil
			s.core.Stop(s.clock.now())
			crash.Point("shutdown.after_signal")
		case <-moved:
			return
		}
		s.takeMore()
	}
}

// takeMore takes in what else has been answered, so that one decision serves all of it.
func (s *shell) takeMore() {
	now := s.clock.now()
	for range mostInputs {
		select {
		case apply := <-s.answers:
			apply(now)
		case done := <-s.results:
			s.published(now, done)
		default:
			return
		}
	}
}

func (s *shell) published(now time.Duration, done result) {
	s.sender.inFlight--
	s.core.Published(now, done.publish, done.outcome)
	if s.sender.inFlight == 0 {
		crash.Point("publish.after_batch")
	}
}

// call makes a call of the store. It may take a third of the lease: a server that hangs, for instance on a
// standby that does not answer, must not hold up the relay.
func (s *shell) call(call core.Call) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.work, s.relay.config.Lease/3)
		defer cancel()
		apply := call.Run(ctx, s.storeOf(call.Op))
		select {
		case s.answers <- apply:
		case <-s.work.Done():
		}
	})
}

// storeOf picks the connections of a call.
func (s *shell) storeOf(op core.Op) core.Store {
	switch op {
	case core.OpHeartbeat, core.OpEndExpired, core.OpAcquire, core.OpRelease, core.OpSettle, core.OpNote:
		return s.leases
	case core.OpFence, core.OpRead, core.OpBarrier, core.OpUnpark, core.OpHeldKeys, core.OpDueKeys, core.OpHeldRows,
		core.OpOldParked, core.OpSweep, core.OpSaveRoutes:
		return s.reads
	default:
		return s.reads
	}
}

// connect makes a connection of its own, as the pools make theirs.
func (r *Relay) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config = config.Copy()
	if before := r.config.BeforeConnect; before != nil {
		if err := before(ctx, config); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config) //nolint:wrapcheck // every caller says what it was for
}

// listen rings the core's bell when somebody rings the outbox's.
func (s *shell) listen(ctx context.Context) {
	config := &s.relay.config
	if config.ListenDatabase == "off" {
		return
	}
	connect := func(ctx context.Context) (*pgx.Conn, error) {
		settings, err := pgx.ParseConfig(config.ListenDatabase)
		if err != nil {
			return nil, err //nolint:wrapcheck // it is tried again, without a word
		}
		return s.relay.connect(ctx, settings)
	}
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
// monotonic one stands still while a machine is suspended, and leases do not. It adds up what passed between two
// looks, so that a wall clock that is set back takes nothing away.
type clock struct {
	mutex sync.Mutex
	last  time.Time
	total time.Duration
}

func newClock() *clock { return &clock{last: time.Now()} }

func (c *clock) now() time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.at(time.Now()) // read inside the lock: otherwise two readings could be taken in the wrong order
}

// at takes in the next time.
func (c *clock) at(t time.Time) time.Duration {
	passed := max(0, t.Sub(c.last), t.Round(0).Sub(c.last.Round(0))) // Round strips the monotonic reading
	c.total += passed
	c.last = t
	return c.total
}

// cryptoRandom is chance that nobody can foresee: tokens are made of it.
func cryptoRandom() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails: it ends the program instead
	return binary.LittleEndian.Uint64(b[:])
}
