package core

import (
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// row is an event in memory.
type row struct {
	Event
	lane      *lane
	line      *line
	route     *route // nil: its type is not known
	held      bool   // read as a held row: it is not ready, and does not keep the lane's floor down
	deferred  bool   // let other probes go first once
	decided   bool   // its fate is known
	done      bool   // its settle is acknowledged
	forgotten bool   // dropped from memory; the database has it still
	arrived   string // the topic under which it was counted
	refused   int    // failures in a row that were nobody's
	startedAt time.Duration
	answered  bool
	outcome   Outcome
}

// lineKey names the events of one aggregate on one topic: what is kept in order.
type lineKey struct {
	Aggregate
	topic string
}

// line is a queue of events of one aggregate on one topic, first of all those that are in flight.
type line struct {
	key       lineKey
	route     *route
	lane      int16
	rows      []*row
	inFlight  int
	failed    bool          // something in flight has failed: nothing more is sent until all of it is answered
	queued    bool          // is in Core.runnable, or waits to be put there
	notBefore time.Duration // after a failure that was nobody's: a pause before the next try
}

// The line that may always be in memory, and how long the broker may take for a longer one. What is beyond
// waits in the database, so that one slow aggregate cannot fill the memory of all.
const (
	shortLine   = 128
	longestWork = time.Second
)

// isLong tells whether a line has more in memory than the broker takes in soon.
func (c *Core) isLong(now time.Duration, l *line) bool {
	if len(l.rows) < shortLine {
		return false
	}
	latency := l.route.latency
	if l.inFlight > 0 {
		latency = max(latency, now-l.rows[0].startedAt)
	}
	return time.Duration(len(l.rows)/l.route.depth)*latency > longestWork
}

// makeRoom sends back to the database what is queued in lines whose heads hang, when there is no room for others:
// it waits there, and the rest goes on. A route that has most of the room gets its own reader, which takes no
// more than the route may send.
func (c *Core) makeRoom(now time.Duration) {
	if c.stopping || c.room() > 0 {
		c.roomAt = never
		return
	}
	look := now >= c.roomAt
	if look || c.roomAt == never { // it may be full for a moment only
		c.roomAt = now + c.config.HeldPeriod/4
	}
	c.wakeAt(c.roomAt)
	if !look {
		return
	}
	for _, r := range c.ordered {
		rows := 0
		for _, l := range c.linesOf(r) {
			rows += len(l.rows)
			if c.hangs(now, l) && len(l.rows) > l.inFlight && !l.failed {
				c.hold(l.rows[l.inFlight].lane, l.key, now)
				c.waitBehind(l)
			}
		}
		share := c.config.MaxInFlight / 2
		if r.stalls(now) {
			share /= 8
		}
		if c.topics > 1 && rows > share && !r.paused && (r.stalls(now) || len(r.resume) == 0) {
			c.detach(now, r)
		}
	}
}

// hangs tells whether the head of a line has been in flight for much longer than others.
func (c *Core) hangs(now time.Duration, l *line) bool {
	return l.inFlight > 0 && now-l.rows[0].startedAt > max(longestWork, 10*l.route.latency)
}

// lineOf returns the line, making it if need be.
func (c *Core) lineOf(key lineKey) *line {
	l := c.lines[key]
	if l == nil {
		l = &line{key: key, route: c.routeOf(key.topic)}
		c.lines[key] = l
	}
	return l
}

// admit decides about a ready row that may be published.
func (c *Core) admit(now time.Duration, r *row) {
	route, known := c.config.Routes.Route(r.Type)
	if r.Unholdable() {
		c.end(lineKey{Aggregate: r.Aggregate, topic: route.Topic}, r, fate{
			state: Dead, attempts: r.Attempts, reason: string(outbox.InvalidPayload),
			detail: fmt.Sprintf("the names have more than %d bytes", mostName),
		})
		return
	}
	if !known {
		// Also behind others of that kind: the age of each counts from its own parking, and not from the death of
		// the one before.
		c.notKnown(r)
		return
	}
	c.arrive(r, route.Topic)
	key := lineKey{Aggregate: r.Aggregate, topic: route.Topic}
	switch {
	case r.Stray:
		c.parkStray(r, key)
	case c.isHeld(r.lane, key):
		c.wait(r, key)
	case c.pausedType(r.Type):
		c.wait(r, key)
	default:
		l := c.lineOf(key)
		switch {
		case c.suspected(now, l, r):
		case c.isLong(now, l):
			c.hold(r.lane, key, now)
			c.wait(r, key)
		default:
			c.enqueue(l, r)
		}
	}
}

// arrive counts an event, but not once more when it comes back.
func (c *Core) arrive(r *row, topic string) {
	if r.Seq > r.lane.wentBack[topic] {
		c.config.Arrived(topic)
	}
	r.arrived = topic
}

// enqueue puts a row at the end of its line.
func (c *Core) enqueue(l *line, r *row) {
	r.line, l.lane = l, r.Lane
	l.rows = append(l.rows, r)
	c.run(l)
}

// run makes a line runnable if it has something to publish.
func (c *Core) run(l *line) bool {
	if l.queued || l.inFlight >= min(len(l.rows), l.route.depth) {
		return false
	}
	l.queued = true
	c.runnable.push(l)
	return true
}

// next is the first row of a line that is not in flight; nil: all are.
func (l *line) next() *row {
	if l.inFlight == len(l.rows) {
		return nil
	}
	return l.rows[l.inFlight]
}

// dropQueued takes the rows that are not in flight out of a line.
func (c *Core) dropQueued(l *line, take func(*row)) {
	rows := l.rows[l.inFlight:]
	l.rows = l.rows[:l.inFlight:l.inFlight]
	for _, r := range rows {
		r.line = nil
		take(r)
	}
	c.retire(l)
}

// retire forgets a line without rows.
func (c *Core) retire(l *line) {
	if len(l.rows) > 0 || c.lines[l.key] != l {
		return
	}
	delete(c.lines, l.key)
	if lane := c.lanes[l.lane]; lane != nil {
		if h := lane.holds[l.key]; h != nil {
			c.reschedule(c.now, h) // what is held of it had to wait for the line
		}
	}
}

// remember takes a row into memory.
func (c *Core) remember(r *row) {
	r.lane.remember(r)
	if known, ok := c.config.Routes.Route(r.Type); ok {
		r.route = c.routeOf(known.Topic)
	}
	c.weigh(r, 1)
	c.largest = max(c.largest, r.Bytes())
}

// weigh counts a row into what is in memory, or out of it.
func (c *Core) weigh(r *row, by int) {
	c.unsettled += by
	c.bytes += by * r.Bytes()
	if r.route != nil {
		r.route.rows += by
		if r.held {
			r.route.heldRows += by
		}
		r.route.bytes += by * r.Bytes()
	}
}

// forget drops a row from memory. The database has it as it was; whoever reads it goes back to it.
func (c *Core) forget(r *row) {
	if r.forgotten {
		return
	}
	r.forgotten = true
	if r.arrived != "" {
		r.lane.wentBack[r.arrived] = max(r.lane.wentBack[r.arrived], r.Seq)
	}
	c.weigh(r, -1)
	r.lane.unremember(r)
	if r.held {
		return
	}
	if route := c.routeOfType(r.Type); route != nil {
		if at := route.place(r.lane); at != nil {
			at.from = min(at.from, r.Seq-1)
			at.goneBack()
			return
		}
	}
	r.lane.w, r.lane.c = min(r.lane.w, r.Seq-1), min(r.lane.c, r.Seq-1)
	r.lane.generation++
}
