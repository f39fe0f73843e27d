package core

import (
	"context"
	"math"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// never is later than everything.
const never = time.Duration(math.MaxInt64)

// Core decides everything a relay does. It makes no calls and has no goroutines and no clock: the shell
// tells it what happened and when, and asks what to do next. Times are durations since some moment of the
// shell's choice; they never go back.
type Core struct {
	config  Config
	now     time.Duration // when the core was last told or asked something
	actions Actions
	counts  Counts

	stopping bool
	stopBy   time.Duration // when what is still in flight is given up
	left     bool          // the fleet was told that this relay is gone

	members  membership
	lanes    map[int16]*lane
	sorted   []*lane // the same, by number
	fence    fence
	reader   reader
	lines    map[lineKey]*line
	runnable queue[*line]
	stalled  []*line // runnable, but their lane's lease is too short for a publish
	delayed  timers[*line]
	routes   map[string]*route
	ordered  []*route // the same, in the order in which they were met
	limited  []*route // those that operators have limited
	topics   int      // how many the registry names, met or not
	types    map[string]*typeHealth
	unknown  map[string]bool // types that are not known, and that people were told of
	names    names
	pauses   []Pause // of operators, as they were last heard
	held     held
	settling settling

	redelivery redelivery

	publishing int           // publishes in flight
	unsettled  int           // events in memory whose settle is not acknowledged
	bytes      int           // of those
	largest    int           // the most that one event took
	roomAt     time.Duration // when to look again for lines that take up too much
	noting     bool
	note       gate
	unnote     []*lane // whose noted event was answered and is not settled: that must not count
	saving     gate
	refused    bool // the answer that is being told is of another server
	careful    bool // one event at a time, because something keeps killing the relays
}

// New makes the core of a relay that holds nothing yet.
func New(config Config) *Core {
	if config.Arrived == nil {
		config.Arrived = func(string) {}
	}
	if config.Observe == nil {
		config.Observe = func(Step) {}
	}
	return &Core{
		config:   config,
		stopBy:   never,
		roomAt:   never,
		lanes:    map[int16]*lane{},
		lines:    map[lineKey]*line{},
		routes:   map[string]*route{},
		topics:   topicsOf(config.Routes),
		types:    map[string]*typeHealth{},
		unknown:  map[string]bool{},
		names:    newNames(),
		fence:    fence{open: map[Writer]openWriter{}},
		reader:   reader{idle: config.MinPoll, lanes: manyLanes},
		settling: settling{most: mostOfASettle},
		held:     held{sweepAt: config.SweepPeriod, agedAt: config.SweepPeriod},
	}
}

// Act returns what is to be done now. Call it after everything that the core was told, and at Actions.Wake.
func (c *Core) Act(now time.Duration) Actions {
	c.now = now
	c.actions = Actions{Wake: never}
	c.forgetExpired(now)
	c.keepMembership(now)
	c.fillBuckets(now)
	c.openLanes(now)
	c.lookAtHeld(now)
	c.keepFence(now)
	c.wakeRoutes(now)
	c.makeRoom(now)
	c.readReady(now)
	c.readApart(now)
	c.readRoutes(now)
	c.passBarrier(now)
	c.clearNotes(now)
	c.publishNext(now)
	c.redeliver(now)
	c.awaitTokens(now)
	c.settleOutcomes(now)
	c.settleRefused(now)
	c.saveRoutes(now)
	c.actions.Stopped = c.stopping && c.stopped(now)
	actions := c.actions
	c.actions = Actions{}
	return actions
}

const (
	// longestRing is the pause between reads when the bell rings all the time and nothing is found.
	longestRing = 40 * time.Millisecond
	// ringsOfARelay is how many rings in vain, in a row, each relay of the fleet explains: the bell rings for all of them.
	ringsOfARelay = 8
)

// Bell tells that somebody rang: there may be new events, or an operator has made something due. Whoever may connect to
// the database may ring: when it was in vain more often than other relays explain, the pause between reads grows.
func (c *Core) Bell(now time.Duration) {
	c.reader.rung = true
	tooOften := c.reader.inVain - ringsOfARelay*max(1, len(c.members.view.Relays))
	c.reader.wake(now, min(c.config.Poll, grow(c.config.MinPoll, tooOften, max(longestRing, c.config.MinPoll))))
	for _, r := range c.limited { // the main read does not read them
		r.readAt = min(r.readAt, now+c.reader.idle)
	}
	c.held.lookAt = min(c.held.lookAt, max(now, c.held.lookedAt+c.config.HeldPeriod/10))
}

// Stop asks the core to finish what is in flight and to give its lanes back.
func (c *Core) Stop(now time.Duration) {
	if c.stopping {
		return
	}
	c.stopping, c.stopBy = true, now+c.config.Drain
	for _, l := range c.sorted {
		c.drain(l)
	}
}

// Counts returns what was done so far.
func (c *Core) Counts() Counts {
	counts := c.counts
	counts.Lanes, counts.InFlight = len(c.lanes), c.unsettled
	counts.WatermarkLag, counts.OldestWriter = c.behind()
	return counts
}

// wakeAt asks to be woken at a time.
func (c *Core) wakeAt(at time.Duration) { c.actions.Wake = min(c.actions.Wake, at) }

// gate lets one call of a kind through at a time, and keeps it back for longer after each failure.
type gate struct {
	busy     bool
	failures int
	retryAt  time.Duration
}

// shut tells whether a call must wait, and when to look again.
func (c *Core) shut(g *gate, now time.Duration) bool {
	if g.busy {
		return true
	}
	if now < g.retryAt {
		c.wakeAt(g.retryAt)
		return true
	}
	return false
}

// The pauses after failed calls of the store.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 10 * time.Second
)

// begin asks for a call of the store. ask runs on any goroutine and must not touch the core; told runs on
// the core's own.
func begin[A any](c *Core, op Op, g *gate, ask func(context.Context, Store) (A, error),
	told func(now time.Duration, answer A, err error),
) {
	g.busy = true
	c.actions.Calls = append(c.actions.Calls, Call{
		Op: op, Run: func(ctx context.Context, store Store) func(time.Duration) {
			answer, err := ask(ctx, store)
			return func(now time.Duration) {
				c.now = now
				g.busy = false
				before := g.failures
				if err != nil {
					c.keepBack(g, before)
					c.config.Observe(Step{Do: DidFail, Op: op, Detail: err.Error()})
				} else {
					g.failures = 0
				}
				c.refused = false
				told(now, answer, err)
				if c.refused { // where two servers answer in turns this would go on without a pause
					c.keepBack(g, before)
				}
			}
		},
	})
}

// keepBack keeps a call back after it has failed, for longer the more often it had before.
func (c *Core) keepBack(g *gate, before int) {
	g.failures = before + 1
	g.retryAt = c.now + c.jitter(grow(firstPause, g.failures, longestPause))
}

// nothing is the answer of calls that only succeed or fail.
type nothing = struct{}

// grow doubles a delay for every failure after the first, up to a limit. It cannot overflow: it stops
// doubling before it would.
func grow(base time.Duration, failures int, limit time.Duration) time.Duration {
	delay := base
	for i := 1; i < failures && delay < limit; i++ {
		if delay > limit/2 {
			return limit
		}
		delay *= 2
	}
	return min(delay, limit)
}

// jitter returns a time between half the delay and all of it.
func (c *Core) jitter(delay time.Duration) time.Duration {
	half := delay / 2
	if half <= 0 {
		return delay
	}
	return half + time.Duration(c.config.Random()%uint64(delay-half+1))
}

// newToken makes a token that nobody else has.
func (c *Core) newToken() outbox.ID {
	var token outbox.ID
	for i := 0; i < len(token); i += 8 {
		n := c.config.Random()
		for j := range 8 {
			token[i+j] = byte(n >> (8 * j))
		}
	}
	return token
}

// alarm tells people about something that should not be.
func (c *Core) alarm(lane int16, detail string) {
	c.config.Observe(Step{Do: DidAlarm, Lane: lane, Detail: detail})
}
