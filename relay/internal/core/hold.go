package core

import (
	"context"
	"slices"
	"time"
)

// hold is a line of which something is held in the database: a retry, a dead event that blocks, a parked
// one, and what waits behind them. While it stands, ready rows of the line are written down as waiting;
// what is held is read by aggregate, in order, and published from there. It ends when a look at the
// database, begun after the last change was acknowledged, finds nothing.
type hold struct {
	lane     *lane
	key      lineKey
	types    []string // that were met among what is held; of a line whose topic is not known: all that are not
	first    int64    // its first event: what comes before it need not wait; zero: not known yet
	next     int64    // the first held row, as the last look found it; zero: not known
	due      time.Duration
	changes  int  // settles of the line that are not acknowledged
	asking   bool // a look is running
	stale    bool // something changed since it began
	queued   bool // a timer is set, or the route has it
	rests    bool // the last look found a dead or parked event in front
	failures int  // in a row, of its first event, for which nobody was charged
	tried    bool // an event of the line was answered in this tenure: whatever killed the owner before was not its first
	lookedAt time.Duration
}

// held is what is known about the looks at held rows.
type held struct {
	gate     gate
	timers   timers[*hold]
	dueGate  gate
	lookAt   time.Duration // when to look for what operators have made due
	lookedAt time.Duration
	onward   bool // this look goes on where the last one ended, the next begins anew
	sweep    gate
	sweepAt  time.Duration
	// sweptFrom is where the slow round over older numbers goes on.
	sweptFrom int64
	aged      gate
	agedAt    time.Duration
	agedLane  int16 // where the last page of what was parked long ago ended
}

// The sizes of a look.
const (
	asksOfALook = 64
	rowsOfAnAsk = 32
	dueOfALane  = 64
	sweepWindow = 50_000 // numbers that have sunk
	sweepOld    = 20_000 // older ones
	sweepSoon   = time.Second
)

// isHeld tells whether rows of a line must wait: behind the line's own held rows, or behind an event of the
// aggregate whose topic nobody knows.
func (c *Core) isHeld(l *lane, key lineKey) bool {
	unknown := lineKey{Aggregate: key.Aggregate}
	return l.holds[key] != nil || l.holds[unknown] != nil || c.isBlocked(l, key) || c.isBlocked(l, unknown)
}

// hold holds a line, to be looked at when it is due; never leaves that to what is known already.
func (c *Core) hold(l *lane, key lineKey, due time.Duration) *hold {
	h := l.holds[key]
	if h == nil {
		h = &hold{lane: l, key: key, due: due}
		l.holds[key] = h
		if eventType := c.unblock(l, key); eventType != "" {
			h.addType(eventType)
		}
	} else if due != never {
		h.due = due
	}
	return h
}

// heldUnknown is the hold of an aggregate's events of types that are not known here; nil: there are none. One that is
// blocked is looked at before anything goes on: nobody remembers where it stands.
func (c *Core) heldUnknown(now time.Duration, l *lane, aggregate Aggregate) *hold {
	key := lineKey{Aggregate: aggregate}
	if h := l.holds[key]; h != nil || !c.isBlocked(l, key) {
		return h
	}
	h := c.hold(l, key, now)
	c.reschedule(now, h)
	return h
}

func (h *hold) addType(eventType string) {
	if !slices.Contains(h.types, eventType) {
		h.types = append(h.types, eventType)
	}
}

// reschedule sets the timer of a hold that nothing is going on with. One that is blocked is looked at now
// and then all the same, when something was put behind it: an operator may have ended the block.
func (c *Core) reschedule(now time.Duration, h *hold) {
	if h.queued || h.asking || h.changes > 0 || h.lane.lost || c.lines[h.key] != nil {
		return
	}
	at := h.due
	if at == never {
		at = max(now, h.lookedAt+c.config.HeldPeriod)
	}
	h.queued = true
	c.held.timers.push(at, h)
}

// lookAtHeld reads what is held and due.
func (c *Core) lookAtHeld(now time.Duration) {
	c.lookForDue(now)
	c.sweepFloors(now)
	c.buryAged(now)
	room := min(c.room(), max(1, (c.config.MaxBytes-c.bytes)/max(c.largest, 1024)))
	if c.stopping || room <= 0 || !c.fence.known || c.held.timers.next() == never || c.shut(&c.held.gate, now) {
		return
	}
	asked, asks := c.dueHolds(now, min(asksOfALook, room))
	limit := max(1, min(rowsOfAnAsk, room/max(1, len(asks))))
	if slices.ContainsFunc(asked, func(h *hold) bool { return h.key.topic != "" && c.routeOf(h.key.topic).probing }) {
		limit = 1
	}
	if len(asks) == 0 {
		c.wakeAt(c.held.timers.next())
		return
	}
	lanes := make([]*lane, 0, len(asked))
	for _, h := range asked {
		lanes = append(lanes, h.lane)
	}
	request := HeldRows{Owner: c.members.owner, Asks: asks, Limit: limit}
	begin(c, OpHeldRows, &c.held.gate,
		func(ctx context.Context, store Store) (RowsAnswer, error) { return store.HeldRows(ctx, request) },
		func(now time.Duration, answer RowsAnswer, err error) {
			rows, refused := answer.Events, err != nil || !c.sees(lanes, answer.Seen)
			found := map[*hold][]*Event{}
			for i := range rows {
				for _, h := range asked {
					if h.key.Aggregate == rows[i].Aggregate && h.wants(c, rows[i].Type) {
						found[h] = append(found[h], &rows[i])
					}
				}
			}
			for _, h := range asked {
				h.asking = false
				switch {
				case h.lane.lost || h.lane.holds[h.key] != h:
				case refused || h.lane.draining:
					c.reschedule(now, h)
				default:
					c.look(now, h, found[h])
				}
			}
		})
}

// dueHolds takes the holds whose time has come and that may be looked at.
func (c *Core) dueHolds(now time.Duration, most int) (asked []*hold, asks []HeldAsk) {
	for c.held.timers.next() <= now && len(asks) < most {
		h := c.held.timers.pop()
		h.queued = false
		types := h.types
		if h.key.topic != "" {
			types = c.routeOf(h.key.topic).types
		}
		switch {
		case h.lane.lost || h.lane.draining || h.lane.holds[h.key] != h || h.changes > 0 || h.asking || c.lines[h.key] != nil:
			// whatever is going on with it sets the timer again
		case !h.lane.opened: // what it must wait for is perhaps not listed yet
			h.queued = true
			h.lane.early = append(h.lane.early, h)
		case h.next != 0 && !c.haveRead(h, h.next):
			h.queued = true
			c.held.timers.push(now+c.config.FencePeriod, h)
		case h.key.topic != "" && (c.routeOf(h.key.topic).paused || c.hasEnoughHeld(c.routeOf(h.key.topic))):
			h.queued = true
			r := c.routeOf(h.key.topic)
			r.holds = append(r.holds, h)
		default:
			h.asking, h.stale, h.lookedAt = true, false, now
			asked = append(asked, h)
			asks = append(asks, HeldAsk{Lane: h.lane.number, Aggregate: h.key.Aggregate, Types: types})
		}
	}
	return asked, asks
}

// wants tells whether a held row of its aggregate belongs to the hold.
func (h *hold) wants(c *Core, eventType string) bool {
	if h.key.topic == "" {
		return slices.Contains(h.types, eventType)
	}
	route, known := c.config.Routes.Route(eventType)
	return known && route.Topic == h.key.topic
}

// look decides what to do about the held rows of a line, which come in order.
func (c *Core) look(now time.Duration, h *hold, rows []*Event) {
	switch {
	case h.stale: // what was read may be older than what is known
		h.due = min(h.due, now)
		c.reschedule(now, h)
	case len(rows) == 0:
		delete(h.lane.holds, h.key)
		if h.key.topic == "" {
			c.lookBehind(now, h)
		}
	case !c.haveRead(h, rows[0].Seq):
		h.next, h.due = rows[0].Seq, now+c.config.FencePeriod
		c.reschedule(now, h)
	case h.key.topic == "":
		h.stands(rows[0])
		c.lookAtUnknown(now, h, rows)
	default:
		h.stands(rows[0])
		for _, event := range rows {
			if !c.sendHeld(now, h, event) {
				return
			}
		}
	}
}

// stands takes in what is in front.
func (h *hold) stands(first *Event) {
	h.next, h.due = first.Seq, never
	h.rests = first.State == Parked || first.State == DeadBlocking
}

// lookAtUnknown decides about held events of types that are not known here. All are parked at once: one that was
// released, or that waits since a relay had the lane that knew it, would else have its age only from the death of the
// one before.
func (c *Core) lookAtUnknown(now time.Duration, h *hold, events []*Event) {
	if h.first != events[0].Seq {
		h.first = events[0].Seq
		c.lookBehind(now, h)
	}
	for _, event := range events {
		if r := c.takeHeld(now, h, event); r != nil {
			c.notKnown(r)
		}
	}
}

// sendHeld puts a held row into its line, unless it or something before it must wait.
func (c *Core) sendHeld(now time.Duration, h *hold, event *Event) (goOn bool) {
	if unknown := c.heldUnknown(now, h.lane, h.key.Aggregate); unknown != nil && event.Seq > unknown.first {
		return false // when that one goes, it sets the timer
	}
	if !c.haveRead(h, event.Seq) {
		return false // what is before it is sent now, and followed by another look
	}
	if c.pausedType(event.Type) {
		c.awaitResume(h)
		return false
	}
	r := c.takeHeld(now, h, event)
	if r == nil {
		return false
	}
	if r.Stray {
		c.parkStray(r, h.key)
		return false
	}
	l := c.lineOf(h.key)
	if c.suspected(now, l, r) {
		return false
	}
	c.enqueue(l, r)
	return true
}

// takeHeld takes a held row into memory if it is due.
func (c *Core) takeHeld(now time.Duration, h *hold, event *Event) *row {
	wait := time.Duration(0)
	switch old := h.lane.rows[event.Seq]; {
	case event.State == Parked || event.State == DeadBlocking:
		return nil
	case event.State == Retrying && event.DueIn > 0:
		wait = event.DueIn
	case old != nil && !old.done:
		wait = c.config.HeldPeriod
	}
	if wait > 0 {
		if c.lines[h.key] == nil && h.changes == 0 {
			h.due = now + wait
			c.reschedule(now, h)
		}
		return nil
	}
	r := &row{Event: *event, lane: h.lane, held: true}
	c.remember(r)
	return r
}

// haveRead tells whether all that is ready in the lane before a held row has been read: what is ready and
// dropped from memory, or not yet read by a new owner, may belong before it.
func (c *Core) haveRead(h *hold, seq int64) bool {
	for _, rows := range [...][]*row{c.reader.fresh, c.reader.passing} {
		for _, r := range rows { // read, and not decided on
			if r.lane == h.lane && r.Seq < seq && r.Aggregate == h.key.Aggregate && !r.forgotten {
				return false
			}
		}
	}
	if h.key.topic != "" {
		if at := c.routeOf(h.key.topic).place(h.lane); at != nil {
			return max(at.from, at.c) >= seq-1
		}
	}
	return max(h.lane.w, h.lane.c) >= seq-1
}

// lookBehind sets the timers of an aggregate's lines that waited behind an event of an unknown type.
func (c *Core) lookBehind(now time.Duration, unknown *hold) {
	for _, r := range c.ordered {
		if h := unknown.lane.holds[lineKey{Aggregate: unknown.key.Aggregate, topic: r.topic}]; h != nil {
			h.due = min(h.due, now)
			c.reschedule(now, h)
		}
	}
}

// lookForDue asks now and then for retries that are due: an operator may have made them so. Any number of them may
// be due and not go, so it goes on behind a full page. Every second look begins anew all the same: what was
// made due just now comes first.
func (c *Core) lookForDue(now time.Duration) {
	if c.stopping || len(c.lanes) == 0 || !c.fence.known || c.shut(&c.held.dueGate, now) {
		return
	}
	if now < c.held.lookAt {
		c.wakeAt(c.held.lookAt)
		return
	}
	c.held.onward = !c.held.onward
	request := DueKeys{Owner: c.members.owner, Limit: dueOfALane, Exclude: c.pausedTypes()}
	var lanes []*lane
	more := false
	for _, l := range c.sorted {
		if !l.opened || l.draining {
			continue
		}
		ask := LaneFrom{Lane: l.number}
		if c.held.onward {
			ask.After = l.due
		}
		more = more || l.due != HeldPlace{}
		lanes, request.Lanes = append(lanes, l), append(request.Lanes, ask)
	}
	if len(request.Lanes) == 0 {
		return
	}
	c.held.lookedAt, c.held.lookAt = now, now+c.config.HeldPeriod
	if more {
		c.held.lookAt = now + c.config.HeldPeriod/4
	}
	begin(c, OpDueKeys, &c.held.dueGate,
		func(ctx context.Context, store Store) (KeysAnswer, error) { return store.DueKeys(ctx, request) },
		func(now time.Duration, answer KeysAnswer, err error) {
			if err == nil && c.sees(lanes, answer.Seen) {
				c.meetDue(now, request, answer.Keys)
			}
		})
}

// meetDue takes in a page of due retries of each lane, and where it ended.
func (c *Core) meetDue(now time.Duration, asked DueKeys, keys []HeldKey) {
	found, ends := map[int16]int{}, map[int16]HeldPlace{}
	for _, key := range keys {
		found[key.Lane]++
		ends[key.Lane] = key.Place
		if l := c.lanes[key.Lane]; l != nil && l.opened && !l.draining {
			c.meetHeld(now, l, key)
		}
	}
	for _, ask := range asked.Lanes {
		l := c.lanes[ask.Lane]
		switch {
		case l == nil || l.due != ask.After: // a look from the start, between two that go on
		case found[ask.Lane] < asked.Limit:
			l.due = HeldPlace{}
		default:
			l.due = ends[ask.Lane]
			c.held.lookAt = min(c.held.lookAt, now+c.config.HeldPeriod/4)
		}
	}
}

// pausedTypes are the types that are not to be looked for, because nothing of them is published now.
func (c *Core) pausedTypes() (types []string) {
	for _, r := range c.ordered {
		if r.paused {
			types = append(types, r.types...)
		}
	}
	types = append(types, c.typesPausedByOperators()...)
	slices.Sort(types)
	return types
}

// meetHeld takes in that something of a line is held.
func (c *Core) meetHeld(now time.Duration, l *lane, key HeldKey) {
	due := never
	if key.State == Retrying || key.State == Waiting {
		due = now + max(0, key.DueIn)
	}
	route, known := c.config.Routes.Route(key.EventType)
	h := c.hold(l, lineKey{Aggregate: key.Aggregate, topic: route.Topic}, never)
	h.addType(key.EventType)
	if !known {
		// Operators end a block of unknown types as well.
		due = min(due, max(now, h.lookedAt+c.config.HeldPeriod))
	} else if unknown := c.heldUnknown(now, l, key.Aggregate); unknown != nil {
		unknown.due = min(unknown.due, max(now, unknown.lookedAt+c.config.HeldPeriod))
		c.reschedule(now, unknown)
	}
	if due != never && (!h.queued || due < h.due) {
		h.due = min(h.due, due)
		h.queued = false
		c.reschedule(now, h)
	}
}
