package core

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// route is a topic as the relay sees it: healthy, or paused because it fails. A paused route is probed by
// one event at a time, each of another aggregate, because one event alone may be what fails. Once a
// probe is answered the route takes more and more again.
type route struct {
	topic string
	types []string
	depth int // publishes of one aggregate that may be in flight

	paused   bool   // nothing is published until retryAt: never, while an operator says so
	by       string // who paused it, and why; empty: no operator did
	probing  bool   // few at a time, until allowance has grown
	failures int    // in a row
	pauses   int    // in a row
	retryAt  time.Duration
	detail   string
	lastID   outbox.ID          // of the event that failed last
	tried    map[outbox.ID]bool // probes that failed: others go first
	round    int                // counts the pauses

	rows       int // in memory, whatever their state
	heldRows   int // those of them that were read as held rows
	bytes      int // of those
	inFlight   int
	copies     int           // requests in memory
	answeredAt time.Duration // the last answer, or when the first of those in flight was sent
	allowance  int
	waiting    queue[*line] // runnable, when the route takes more
	holds      []*hold      // due, when the route takes some again
	limit      *bucket      // nil: operators have set none

	latency      time.Duration // of acknowledgements, smoothed
	newestAcked  time.Duration // the latest start of a publish that was acknowledged
	acknowledged bool
	// rejected are aggregates whose events were refused since the last acknowledgement, up to manyRejected of them.
	rejected      []Aggregate
	rejectedSince time.Duration

	// While it is not empty, the types of this route are left out of the main read, which moves on; this is
	// from where the route's own reader goes, lane by lane.
	resume []resume
	cursor cursor
	gate   gate
	readAt time.Duration
	after  int // the number of the fence to wait for
	idle   time.Duration
	turn   int // which lane's head is the next probe
	alone  int // how many lanes to read one by one, after a read that failed
	saved  bool
}

// The limits of a route's breaker.
const (
	failuresToPause  = 5
	firstProbeAfter  = 500 * time.Millisecond
	probesALane      = 4
	stallsAfter      = time.Second
	mostReads        = 2
	manyRejected     = 3
	probesOfRejected = 8
	// Good events pass among bad ones, however many these are: only a topic that takes none for so long is paused.
	rejectsBeforePause = 10 * time.Second
	longestRejected    = time.Minute
)

// routeOf returns the route to a topic.
func (c *Core) routeOf(topic string) *route {
	r := c.routes[topic]
	if r == nil {
		r = &route{topic: topic, depth: c.config.Depth(topic), saved: true, idle: c.config.MinPoll}
		for _, eventType := range c.config.Routes.Types() {
			if known, _ := c.config.Routes.Route(eventType); known.Topic == topic {
				r.types = append(r.types, eventType)
			}
		}
		c.routes[topic] = r
		c.ordered = append(c.ordered, r)
	}
	return r
}

// onlyCopies tells whether no event goes to the topic but for those that are delivered again.
func (r *route) onlyCopies() bool { return len(r.types) == 0 }

// topicsOf counts the topics that events may go to. Those that were not met yet count as well: an event of theirs must
// find room when it comes.
func topicsOf(routes Routes) int {
	topics := map[string]bool{}
	for _, eventType := range routes.Types() {
		if known, ok := routes.Route(eventType); ok {
			topics[known.Topic] = true
		}
	}
	return len(topics)
}

// slots is how many publishes the route may have in flight. No route gets all there are while there are
// others, and one that does not answer gets few: else a topic that hangs would take the others' places.
func (c *Core) slots(now time.Duration, r *route) int {
	most := c.config.Concurrency
	if c.topics > 1 {
		most = max(1, most/2)
		if r.stalls(now) {
			most = max(1, most/8)
		}
	}
	switch {
	case r.paused:
		return 0
	case r.probing:
		return min(r.allowance, most)
	default:
		return most
	}
}

// stalls tells whether the route has not answered for long.
func (r *route) stalls(now time.Duration) bool {
	return r.inFlight > 0 && now-r.answeredAt > stallsAfter
}

// carriedAfter tells whether an event that was sent after this one has been acknowledged.
func (r *route) carriedAfter(failed *row) bool {
	return r.acknowledged && r.newestAcked > failed.startedAt
}

// failing tells whether another event has failed since the last acknowledgement.
func (r *route) failing(failed *row) bool {
	return r.failures > 0 && r.lastID != failed.ID
}

// reject takes in that the broker refused an event.
func (r *route) reject(now time.Duration, aggregate Aggregate) {
	if len(r.rejected) == 0 {
		r.rejectedSince = now
	}
	if !r.rejectsAll() && !slices.Contains(r.rejected, aggregate) {
		r.rejected = append(r.rejected, aggregate)
	}
}

// rejectsAll tells whether the broker has refused the events of several aggregates and taken none since. Then it is not
// the events: a schema was attached to the topic by mistake, say, and each of them would use up its attempts.
func (r *route) rejectsAll() bool { return len(r.rejected) >= manyRejected }

// carried takes in an acknowledgement.
func (c *Core) carried(now time.Duration, r *route, started time.Duration) {
	r.acknowledged, r.rejected = true, nil
	r.latency += (now - started - r.latency) / 8
	r.newestAcked = max(r.newestAcked, started)
	c.answered(now, r)
}

// answered takes in that the broker answered, be it a refusal of one event: the route itself works.
func (c *Core) answered(now time.Duration, r *route) {
	r.failures, r.tried = 0, nil
	if !r.probing {
		return
	}
	r.allowance++
	if r.allowance > failuresToPause {
		r.pauses = 0 // it works; should it fail again, that is another outage
	}
	r.readAt = min(r.readAt, now)
	if r.allowance >= c.config.Concurrency {
		r.probing, r.pauses = false, 0
	}
	if r.saved = r.saved && r.detail == ""; r.detail != "" {
		r.detail = ""
		c.config.Observe(Step{Do: DidResume, Topic: r.topic, Redelivered: r.onlyCopies()})
	}
}

// release makes as many lines runnable as the route has places for.
func (c *Core) release(now time.Duration, r *route) {
	for free := r.within(c.slots(now, r) - r.inFlight); free > 0 && r.waiting.len() > 0; {
		l := r.waiting.pop()
		l.queued = false
		if c.run(l) {
			free--
		}
	}
}

// refuse counts a failure of the route and pauses it when there were enough.
func (c *Core) refuse(now time.Duration, r *route, failed *row) {
	r.failures++
	r.lastID = failed.ID
	if r.probing || r.rejectsAll() {
		if r.tried == nil {
			r.tried = map[outbox.ID]bool{}
		}
		r.tried[failed.ID] = true
	}
	switch {
	case r.paused:
	case r.failures >= failuresToPause || failed.outcome.RetryAfter > 0 || r.probing && r.allowance == 1:
		c.pause(now, r, failed.outcome)
	case r.probing:
		// It has carried others: one that fails among them slows it down. Were it paused for each, a route that loses
		// an answer now and then would hardly ever come back from an outage.
		r.allowance = max(1, r.allowance/2)
	}
}

// pause stops a route and drops what is in memory for it; its own reader will find it again.
func (c *Core) pause(now time.Duration, r *route, why Outcome) {
	r.paused, r.probing = true, false
	r.pauses++
	r.round++
	r.retryAt = now + max(c.jitter(grow(firstProbeAfter, r.pauses, longestPause)), why.RetryAfter)
	if r.detail == "" {
		c.config.Observe(Step{
			Do: DidPause, Topic: r.topic, Redelivered: r.onlyCopies(), Class: why.Class, Detail: why.Detail,
		})
	}
	r.detail = why.Detail
	if r.detail == "" {
		r.detail = "the broker does not answer"
	}
	r.saved = false
	c.detach(now, r)
}

// linesOf lists the lines of a route, in the same order every time.
func (c *Core) linesOf(r *route) []*line {
	var lines []*line
	for _, l := range c.lines {
		if l.route == r {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, func(a, b *line) int {
		return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Type, b.key.Type),
			cmp.Compare(a.key.ID, b.key.ID))
	})
	return lines
}

// rowsOf counts what is in memory for a route.
func (c *Core) rowsOf(r *route) (rows int) {
	for _, l := range c.lines {
		if l.route == r {
			rows += len(l.rows)
		}
	}
	return rows
}

// wakeRoutes lets paused routes be probed when it is time.
func (c *Core) wakeRoutes(now time.Duration) {
	for _, r := range c.ordered {
		if !r.paused {
			continue
		}
		if now < r.retryAt {
			c.wakeAt(r.retryAt)
			continue
		}
		r.probing, r.allowance = true, 1
		if r.rejectsAll() { // it answers: perhaps some events are bad after all, and others good
			r.failures, r.allowance = 0, min(c.config.Concurrency, probesOfRejected<<min(r.pauses, 8))
		}
		c.wake(now, r)
	}
}

// wake lets a route take events again.
func (c *Core) wake(now time.Duration, r *route) {
	r.paused, r.readAt, r.idle = false, now, c.config.MinPoll
	c.release(now, r)
	c.lookAgain(now, r, len(r.holds))
}

// lookAgain looks at holds that had to wait for a route, so many at most.
func (c *Core) lookAgain(now time.Duration, r *route, most int) {
	most = min(most, len(r.holds))
	holds := r.holds[:most]
	if r.holds = r.holds[most:]; len(r.holds) == 0 {
		r.holds = nil
	}
	for _, h := range holds {
		h.queued = false
		c.reschedule(now, h)
	}
}

// routeOfType is the route of a type, nil when the type is not known.
func (c *Core) routeOfType(eventType string) *route {
	known, ok := c.config.Routes.Route(eventType)
	if !ok {
		return nil
	}
	return c.routes[known.Topic]
}

// saveRoutes writes down how routes stand, when that has changed.
func (c *Core) saveRoutes(now time.Duration) {
	if c.stopping || !c.members.registered || c.shut(&c.saving, now) {
		return
	}
	if !c.redelivery.forgotten && !slices.ContainsFunc(c.ordered, func(r *route) bool { return !r.saved }) {
		return
	}
	c.redelivery.forgotten = false
	saved := slices.Clone(c.ordered)
	statuses := make([]RouteStatus, 0, len(saved))
	for _, r := range saved {
		statuses = append(statuses, RouteStatus{
			Topic: r.topic, Paused: r.by+r.detail != "", ByOperator: r.by != "", Error: cmp.Or(r.by, r.detail),
		})
		r.saved = true
	}
	relay := c.members.owner.Relay
	begin(c, OpSaveRoutes, &c.saving,
		func(ctx context.Context, store Store) (nothing, error) {
			return nothing{}, store.SaveRoutes(ctx, relay, statuses)
		},
		func(_ time.Duration, _ nothing, err error) {
			for _, r := range saved {
				r.saved = r.saved && err == nil
			}
			c.redelivery.forgotten = c.redelivery.forgotten || err != nil // that of all is written then
		})
}
