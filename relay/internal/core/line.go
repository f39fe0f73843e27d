package core

import "time"

// row is an event in memory.
type row struct {
	Event
	lane      *lane
	line      *line
	held      bool // read as a held row: it is not ready, and does not keep the lane's floor down
	sent      bool // was handed to the broker by this relay
	deferred  bool // let other probes go first once
	decided   bool // its fate is known
	done      bool // its settle is acknowledged
	forgotten bool // dropped from memory; the database has it still
	refused   int  // failures in a row that were nobody's
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
	rows      []*row
	inFlight  int
	queued    bool          // is in Core.runnable, or waits to be put there
	notBefore time.Duration // after a failure that was nobody's: a pause before the next try
}

// longestLine is how many events of one line are kept in memory. More of them wait in the database, so
// that one slow aggregate cannot fill the memory of all.
const longestLine = 128

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
	if !known {
		c.notKnown(now, r)
		return
	}
	key := lineKey{Aggregate: r.Aggregate, topic: route.Topic}
	switch {
	case c.isHeld(r.lane, key):
		c.wait(r, key)
	case c.types[r.Type] != nil && c.types[r.Type].paused:
		c.park(now, r, key, c.types[r.Type].detail)
	default:
		l := c.lineOf(key)
		switch {
		case c.suspected(now, l, r):
		case len(l.rows) >= longestLine:
			c.hold(r.lane, key, now)
			c.wait(r, key)
		default:
			c.enqueue(l, r)
		}
	}
}

// enqueue puts a row at the end of its line.
func (c *Core) enqueue(l *line, r *row) {
	r.line = l
	l.rows = append(l.rows, r)
	c.run(l)
}

// run makes a line runnable if it has something to publish.
func (c *Core) run(l *line) bool {
	if l.queued || l.inFlight >= min(len(l.rows), c.config.Depth) {
		return false
	}
	l.queued = true
	c.runnable.push(l)
	return true
}

// dropQueued takes the rows that are not in flight out of a line, all of them or those of one lane.
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
	if len(l.rows) == 0 && c.lines[l.key] == l {
		delete(c.lines, l.key)
	}
}

// forget drops a row from memory. The database has it as it was; whoever reads it goes back to it.
func (c *Core) forget(r *row) {
	if r.forgotten {
		return
	}
	r.forgotten = true
	c.unsettled--
	c.bytes -= r.Bytes()
	r.lane.unremember(r)
	if r.held {
		return
	}
	if route := c.routeOfType(r.Type); route != nil {
		if at := route.place(r.lane); at != nil {
			at.from = min(at.from, r.Seq-1)
			at.generation++
			return
		}
	}
	r.lane.w, r.lane.c = min(r.lane.w, r.Seq-1), min(r.lane.c, r.Seq-1)
	r.lane.generation++
}
