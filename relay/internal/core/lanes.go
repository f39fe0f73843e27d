package core

import (
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// lane is one tenure of a lane: won again, it is another one.
type lane struct {
	number     int16
	token      outbox.ID
	server     string // the incarnation on which it was acquired: floor, bounds and rows are about that one
	acquiredAt time.Duration
	wanted     bool     // it was taken for the types parked in it
	needed     []string // what it needed when it was given up
	crashed    bool     // the owner before did not give it back
	calm       bool     // whatever killed owners before is behind, and was found to be so once
	suspect    outbox.ID
	careful    bool      // relays keep dying with it: one event at a time
	noted      outbox.ID // the event that is sent alone
	outlived   bool      // it was sent, and this relay lives
	blamed     outbox.ID // the one that owners before have died with
	deaths     int       // so many, less those that speak for it
	faced      bool      // this relay has sent that one
	strayed    bool      // events were found in it that belong to another lane
	lost       bool
	lostAt     time.Duration
	opened     bool // what is held is known: ready rows may be read
	draining   bool // to be given back as soon as nothing is in flight
	releasing  bool

	swept      int64 // numbers up to here were looked at once more, below the floor
	began      int64 // the floor of the owner before
	floor      int64 // as the database has it: everything at or below is settled or held
	w          int64 // nothing can still appear at or below it, and all of it has been read
	c          int64 // reads begin here, as long as the reader's excepted writers are open
	generation int   // changes when w or c went back: what older reads have shown does not move them
	more       int   // rows to read beyond those in memory
	most       int   // rows to ask for at most, those in memory included, because more took too long; zero: any number
	apart      bool  // it is read by itself
	reading    gate  // of those reads
	tooMany    int   // rows that were asked for when a read failed; zero: none failed of late
	wentWell   int   // reads since then that were as large as they may be

	rows      map[int64]*row   // in memory, by number
	wentBack  map[string]int64 // by topic, the highest number that has arrived and went back to the database
	sent      map[int64]bool   // handed to the broker by this relay, and not settled
	inherited int64            // up to here the owner before may have sent events: it crashed
	unsettled int              // ready rows among them
	inFlight  int              // publishes
	unwritten int              // fates that are not written down
	holds     map[lineKey]*hold
	blocked   blocked
	due       HeldPlace // where the last look for due retries ended, if there were more
	aged      HeldPlace // the same of what was parked long ago

	requests     map[int64]bool // in memory
	requestBytes int
	requestLines []*requestLine
	pages        []*page       // those in memory by topic
	suspects     int           // requests in memory that were taken alone
	survived     int           // those in memory that were taken before, by relays that did not come back with them
	besideAt     time.Duration // no look for others before, as long as there are some in memory
	missing      []string      // types of open requests that may not go here

	unparked bool      // what is parked of types that this relay knows was released
	parkedTo HeldPlace // as long as it is not: up to where
	listedTo HeldLine  // as long as it is not opened: up to where what is held is known
	early    []*hold   // due before it was opened
}

func (l *lane) tenure() Tenure { return Tenure{Lane: l.number, Token: l.token} }

func (l *lane) remember(r *row) {
	l.rows[r.Seq] = r
	if !r.held {
		l.unsettled++
	}
}

// unsettledOf counts the ready rows above a number that the own reader of a route reads: also those of types that are
// not known.
func (l *lane) unsettledOf(r *route, from int64) (rows int) {
	for _, row := range l.rows {
		if row.Seq > from && (row.route == r || row.route == nil) && !row.held && !row.done {
			rows++
		}
	}
	return rows
}

// unremember takes a row out that is not settled.
func (l *lane) unremember(r *row) {
	if l.rows[r.Seq] == r {
		delete(l.rows, r.Seq)
		if !r.held {
			l.unsettled--
		}
	}
}

// forget takes a settled row out.
func (l *lane) forget(r *row) {
	if l.rows[r.Seq] == r {
		delete(l.rows, r.Seq)
	}
}

// mayPublish tells whether a publish that begins now ends while the lane is certainly held.
func (c *Core) mayPublish(l *lane, now time.Duration) bool {
	m := &c.members
	return !l.lost && m.server == l.server && now+c.config.Deadline+c.config.Margin < m.since+c.config.Lease
}

// forgetExpired gives up all lanes when others may have ended this relay by now.
func (c *Core) forgetExpired(now time.Duration) {
	if len(c.sorted) == 0 {
		return
	}
	end := c.members.since + c.config.Lease
	if now >= end {
		c.abandon(now, "the lease has expired")
		return
	}
	c.wakeAt(end)
}

// lose gives up a lane that is, or may be, another relay's. What is in flight cannot be called back; its
// answers are ignored.
func (c *Core) lose(l *lane, why string) {
	if l.lost {
		return
	}
	c.config.Observe(Step{Do: DidLose, Lane: l.number, Token: l.token, Detail: why})
	l.needed, l.lostAt = c.needs(l), c.now
	if l.inFlight > 0 {
		c.members.flying = append(c.members.flying, l)
	}
	c.leave(l)
}

func (c *Core) loseAll(why string) {
	for _, l := range slices.Clone(c.sorted) {
		c.lose(l, why)
	}
}

// leave forgets everything about a lane.
func (c *Core) leave(l *lane) {
	l.lost = true
	delete(c.lanes, l.number)
	c.sorted = slices.DeleteFunc(c.sorted, func(other *lane) bool { return other == l })
	for _, r := range l.rows {
		if r.done || r.forgotten {
			continue
		}
		c.weigh(r, -1)
		r.forgotten = true
		if r.line != nil && !r.line.flying(r) {
			c.unqueue(r)
		}
	}
	c.loseRequests(l)
	l.rows, l.holds, l.blocked = nil, nil, blocked{}
	c.settling.pending = slices.DeleteFunc(c.settling.pending, func(f fate) bool { return f.row.lane == l })
	for _, r := range c.ordered {
		r.resume = slices.DeleteFunc(r.resume, func(at resume) bool { return at.lane == l })
	}
	if c.careful && len(c.sorted) == 0 {
		c.careful = false
	}
}

// unqueue takes a row that is not in flight out of its line.
func (c *Core) unqueue(r *row) {
	if l := r.line; l != nil {
		r.line = nil
		l.rows = slices.DeleteFunc(l.rows, func(other *row) bool { return other == r })
		c.retire(l)
	}
}

// flying tells whether a row of the line is in flight.
func (l *line) flying(r *row) bool { return slices.Contains(l.rows[:l.inFlight], r) }

// drain stops a lane from reading and publishing more, to give it back.
func (c *Core) drain(l *lane) {
	if l.draining {
		return
	}
	l.draining = true
	// What a read under way brings is not taken any more, so it must not move the bounds, nor the floor.
	l.generation++
	for _, r := range c.ordered {
		if at := r.place(l); at != nil {
			at.goneBack()
		}
	}
	for _, r := range l.rows {
		if r.decided || r.forgotten || r.line != nil && r.line.flying(r) {
			continue
		}
		c.unqueue(r)
		c.forget(r)
	}
	c.drainRequests(l)
}

// reached is the number up to which everything that the main read has shown is settled or held.
func (l *lane) reached() int64 {
	reached := l.w
	for seq, r := range l.rows {
		if !r.held && !r.done {
			reached = min(reached, seq-1)
		}
	}
	return reached
}

// floorOf is the number at and below which everything of a lane is settled or held.
func (c *Core) floorOf(l *lane) int64 {
	floor := l.reached()
	for _, r := range c.ordered {
		for i := range r.resume {
			if r.resume[i].lane == l {
				floor = min(floor, r.resume[i].from)
			}
		}
	}
	return max(floor, l.floor)
}

// hasUnknown tells whether something of a type is held that this relay does not know.
func (c *Core) hasUnknown(l *lane) bool {
	for key := range l.holds {
		if key.topic == "" {
			return true
		}
	}
	return c.blocksUnknown(l)
}

// blocksUnknown tells whether a line stands behind an event of such a type.
func (c *Core) blocksUnknown(l *lane) bool {
	return slices.ContainsFunc(c.blockedTypes(l), func(eventType string) bool {
		_, known := c.config.Routes.Route(eventType)
		return !known
	})
}

// needs lists the types held in a lane that this relay does not know, or that another relay does not: in its hands
// they would be parked, and the lane would have to come back. There may be any number: all that some relay knows are
// listed, because they decide who should have the lane, and a few of the others.
func (c *Core) needs(l *lane) []string {
	var needs, nobodys []string
	add := func(eventType string) {
		switch _, known := c.config.Routes.Route(eventType); {
		case c.members.unshared[eventType] || !known && c.members.somebody[eventType]:
			needs = append(needs, eventType)
		case !known:
			nobodys = append(nobodys, eventType)
		}
	}
	for _, h := range l.holds {
		for _, eventType := range h.types {
			add(eventType)
		}
	}
	for _, eventType := range c.blockedTypes(l) {
		add(eventType)
	}
	for _, eventType := range l.missing {
		add(eventType)
	}
	slices.Sort(nobodys)
	nobodys = slices.Compact(nobodys)
	few := max(1, mostNeeds/max(1, len(c.sorted)))
	needs = append(needs, nobodys[:min(len(nobodys), few)]...)
	slices.Sort(needs)
	return slices.Compact(needs)
}

// mostNeeds is how many types that no relay knows are listed, of all lanes together: each beat carries them.
const mostNeeds = 128

// acquired begins a tenure.
func (c *Core) acquired(now time.Duration, a Acquired, token outbox.ID, server string) *lane {
	if old := c.lanes[a.Lane]; old != nil { // it was lost, and was not noticed yet
		c.lose(old, "the lane was acquired anew")
	}
	l := &lane{
		number: a.Lane, token: token, server: server, acquiredAt: now, crashed: a.Crashed,
		began: a.Floor, floor: a.Floor, swept: a.Swept, w: a.Floor, c: a.Floor,
		rows: map[int64]*row{}, sent: map[int64]bool{}, holds: map[lineKey]*hold{}, wentBack: map[string]int64{},
		requests: map[int64]bool{},
	}
	if a.CrashCount >= crashesToCare {
		l.careful, c.careful = true, true
		c.alarm(a.Lane, "relays keep dying while they hold this lane: its events are published one at a time")
	}
	if a.NotedCount > 0 {
		l.blamed, l.deaths = a.NotedEvent, a.NotedCount
	}
	if a.NotedCount >= crashesToQuarantine {
		l.suspect = a.NotedEvent
	}
	c.lanes[a.Lane] = l
	at, _ := slices.BinarySearchFunc(c.sorted, l, func(x, y *lane) int { return int(x.number) - int(y.number) })
	c.sorted = slices.Insert(c.sorted, at, l)
	for _, r := range c.ordered {
		if len(r.types) > 0 && (r.paused || r.probing || r.limit != nil || len(r.resume) > 0) {
			r.resume = append(r.resume, resume{lane: l, from: l.floor})
		}
	}
	since := c.members.since
	if server != c.members.server { // nothing is published before this server has acknowledged a beat
		c.members.beatAt, since = now, now-c.config.Lease
	}
	c.config.Observe(Step{Do: DidAcquire, Lane: a.Lane, Token: token, Since: since})
	if c.stopping {
		c.drain(l)
	}
	return l
}

// sees tells whether a look at lanes was at the server that the fence is about, and gives up the lanes that it found
// taken.
func (c *Core) sees(lanes []*lane, seen Seen) bool {
	if !c.isOfFence(seen.Incarnation) {
		return false
	}
	for _, l := range lanes {
		if slices.Contains(seen.Lost, l.number) {
			c.lose(l, "a look found the lane taken")
		}
	}
	return true
}

// openLanes finds out what is held in new lanes, before anything ready is read: else a later event could
// overtake one that waits for its retry. What is held may be much: it goes page by page, and a lane that is done opens
// before the others.
func (c *Core) openLanes(now time.Duration) {
	m := &c.members
	if c.stopping || !c.fence.known || c.shut(&m.opening, now) {
		return
	}
	var parked, listed []*lane
	for _, l := range c.sorted {
		switch {
		case l.opened || l.draining || l.server != c.fence.incarnation:
		case l.unparked:
			listed = append(listed, l)
		default:
			parked = append(parked, l)
		}
	}
	if len(listed) > 0 {
		c.listHeld(listed)
	} else if len(parked) > 0 {
		c.unpark(parked)
	}
}

// unpark releases what is parked in lanes of types that this relay knows, a page of it.
func (c *Core) unpark(lanes []*lane) {
	request := Unpark{Owner: c.members.owner, Types: c.config.Routes.Types(), Limit: c.config.HeldPage}
	for _, l := range lanes {
		request.Lanes = append(request.Lanes, LaneFrom{Lane: l.number, After: l.parkedTo})
	}
	begin(c, OpUnpark, &c.members.opening,
		func(ctx context.Context, store Store) (UnparkAnswer, error) { return store.Unpark(ctx, request) },
		func(_ time.Duration, answer UnparkAnswer, err error) {
			if err != nil || !c.sees(lanes, answer.Seen) {
				return
			}
			full := answer.Looked >= request.Limit
			for _, l := range lanes {
				if full && l.number == answer.Lane {
					l.parkedTo = answer.End
					break
				}
				l.unparked = true
			}
		})
}

// listHeld finds out what is held in lanes, a page of it.
func (c *Core) listHeld(lanes []*lane) {
	request := HeldKeys{Owner: c.members.owner, Limit: c.config.HeldPage}
	for _, l := range lanes {
		request.Lanes = append(request.Lanes, LaneLines{Lane: l.number, After: l.listedTo})
	}
	begin(c, OpHeldKeys, &c.members.opening,
		func(ctx context.Context, store Store) (KeysAnswer, error) { return store.HeldKeys(ctx, request) },
		func(now time.Duration, answer KeysAnswer, err error) {
			if err != nil || !c.sees(lanes, answer.Seen) {
				return
			}
			keys := answer.Keys
			for _, key := range keys {
				if l := c.lanes[key.Lane]; l != nil && slices.Contains(lanes, l) && !l.draining {
					c.listed(now, l, key)
				}
			}
			for _, l := range lanes {
				if len(keys) >= request.Limit && l.number == keys[len(keys)-1].Lane {
					last := keys[len(keys)-1]
					l.listedTo = HeldLine{Aggregate: last.Aggregate, EventType: last.EventType}
					break
				}
				c.open(now, l)
			}
			c.reader.wake(now, c.config.MinPoll)
		})
}

// open begins to read a lane, and to look at what is held in it.
func (c *Core) open(now time.Duration, l *lane) {
	if l.lost {
		return
	}
	l.opened = true
	early := l.early
	l.early = nil
	for _, h := range early {
		h.queued = false
		c.reschedule(now, h)
	}
}

// listed takes in that something of a line is held in a new lane.
func (c *Core) listed(now time.Duration, l *lane, found HeldKey) {
	route, _ := c.config.Routes.Route(found.EventType)
	key := lineKey{Aggregate: found.Aggregate, topic: route.Topic}
	stands := (found.State == Parked || found.State == DeadBlocking) && l.holds[key] == nil
	switch {
	case stands && !c.isBlocked(l, key):
		c.block(l, key, found.EventType)
	case stands && key.topic != "": // of another type; one is enough to know that it is blocked
	default:
		c.meetHeld(now, l, found)
	}
}
