package core

import (
	"context"
	"slices"
	"time"
)

// reader reads the ready rows of all lanes, in one statement.
type reader struct {
	gate      gate
	barrier   gate
	at        time.Duration // when to read next
	startedAt time.Duration
	idle      time.Duration // the next pause after a read that found nothing
	rung      bool          // since the last answer
	inVain    int           // how often in a row it was rung and nothing was found
	after     int           // the number of the fence to wait for
	cursor    cursor        // of the lanes' c
	lanes     int           // how many lanes to read at once: fewer after a read that failed, perhaps by its size
	alone     int           // how many lanes to read one by one, to find the one that fails
	narrow    int           // how often the window of a read was halved, because reads failed
	next      int16         // the lane to begin with
	apartAt   time.Duration // when to read the next of them
	nextApart int16         // which that is
	number    int           // counts the reads of this and all routes' readers
	running   []int         // the numbers of those without an answer, ascending
	fresh     []*row        // read, and perhaps not durable yet
	passing   []*row        // those whose barrier is under way
	settled   []settledRow  // acknowledged while older reads were running
}

// cursor is what a reader has read above the place up to which nothing can appear any more.
type cursor struct {
	fence  int          // the number of the fence that it comes from
	except []OpenWriter // while all of these are open, nothing can have appeared below it
}

// settledRow is kept until every read that began before its settle was acknowledged has been answered:
// such a read may still show it as ready.
type settledRow struct {
	row   *row
	reads int // the number of the newest read then
}

// wake makes the next read happen soon, but no more often than the shortest pause.
func (r *reader) wake(now, pause time.Duration) {
	r.idle = pause
	r.at = min(r.at, max(now, r.startedAt+pause))
}

// laneRead is what a read was sent with, for one lane.
type laneRead struct {
	LaneRead
	lane       *lane
	generation int
	last       int64
	count      int
	top        int64 // up to where it looked
	unread     bool
	tooMany    bool // cut because all of it would be too many bytes
}

// current tells whether the lane's bound is where it was when the read was sent, or further on. If it went
// back since, something was dropped from memory that the read may not show, and what it shows may belong behind
// that. By is the route whose own reader it is, nil for the main read.
func (l *laneRead) current(by *route) bool {
	if by == nil {
		return l.lane.generation == l.generation
	}
	at := by.place(l.lane)
	return at != nil && at.generation == l.generation
}

// full tells whether the read brought as many rows as were asked for.
func (l *laneRead) full() bool { return l.count >= l.Limit }

// cut is up to where the read is complete.
func (l *laneRead) cut() int64 {
	if l.full() {
		return l.last
	}
	return l.top
}

// room is how many more events may be in memory; zero while a read would bring too few to be worth it.
func (c *Core) room() int {
	room := c.config.MaxInFlight - c.unsettled
	if room < min(c.config.Batch, c.config.MaxInFlight/2) || c.bytes > c.config.MaxBytes-c.config.MaxBytes/4 {
		return 0
	}
	return room
}

// readReady reads all lanes that this relay may publish from.
func (c *Core) readReady(now time.Duration) {
	r := &c.reader
	if c.stopping || c.room() == 0 || c.shut(&r.gate, now) || !c.fenceServes() {
		return
	}
	if now < r.at {
		c.wakeAt(r.at)
		return
	}
	if c.fence.number < r.after {
		return
	}
	request, reads, all := c.boundReads(now, c.room())
	if len(reads) == 0 {
		return
	}
	request.Writers = r.cursor.except
	request.Exclude = c.excluded()
	sent := c.sending(&r.cursor, all)
	sent.reads, sent.number = reads, c.beginRead()
	r.startedAt = now
	begin(c, OpRead, &r.gate,
		func(ctx context.Context, store Store) (ReadAnswer, error) { return store.Read(ctx, request) },
		func(now time.Duration, answer ReadAnswer, err error) {
			if !c.readable(sent.number, sent.reads, answer, err) {
				r.at = now + c.config.MinPoll
				if err != nil {
					c.readFailed(sent.reads)
				}
				return
			}
			sent.measure(answer.Gone)
			fresh := c.takeRows(sent.reads, answer, nil)
			moved := c.moveBounds(&sent, answer.Gone)
			c.endRead(sent.number)
			windowed := slices.ContainsFunc(sent.reads, func(l laneRead) bool { return l.isWindow() })
			c.wentWell(sent.reads, windowed && moved)
			more := !all || slices.ContainsFunc(sent.reads, func(l laneRead) bool { return l.unread || l.full() })
			beyond := slices.ContainsFunc(sent.reads, func(l laneRead) bool { return l.last > c.fence.last })
			c.paceReads(now, fresh, more, beyond)
			if windowed {
				c.readOn(now, moved)
			}
			if !all {
				r.at = min(r.at, now+c.config.MinPoll)
			}
		})
}

// sending is what is true now, for a read with this cursor, of all of its lanes or not.
func (c *Core) sending(of *cursor, all bool) sentRead {
	sent := sentRead{writers: of.except, last: c.fence.last, safe: c.fence.safe, fence: c.fence.number}
	if c.fence.hasCursor && c.fence.number > of.fence && all {
		sent.promotes, sent.cursor, sent.except = true, c.fence.cursor, c.fence.except
	}
	return sent
}

// fenceServes tells whether ready rows may be read: it takes two listings of the server that is there now to know from
// where.
func (c *Core) fenceServes() bool { return c.fence.listings >= enoughListings }

// excluded lists the types that the main read leaves out.
func (c *Core) excluded() (types []string) {
	for _, route := range c.ordered {
		if len(route.resume) > 0 {
			types = append(types, route.types...)
		}
	}
	slices.Sort(types)
	return types
}

// sentRead is what was true when a read was sent.
type sentRead struct {
	reads    []laneRead
	writers  []OpenWriter
	last     int64 // of the sequence
	safe     int64
	fence    int
	number   int
	promotes bool
	cursor   int64
	except   []OpenWriter
}

// boundReads says from where and how far to read each lane, and whether it is all of them. Rows that are in memory are
// ready still, so they come again and must not use up the limit.
func (c *Core) boundReads(now time.Duration, room int) (_ Read, _ []laneRead, all bool) {
	var usable []*lane
	for _, l := range c.sorted {
		if l.opened && !l.draining && !l.apart && c.mayPublish(l, now) && l.bounded(1, l.unsettled) > 0 {
			usable = append(usable, l)
		}
	}
	if len(usable) == 0 {
		return Read{}, nil, true
	}
	usable, all = c.reader.inTurn(usable)
	share := c.shareOfALane()
	wanted := 0
	for _, l := range usable {
		l.more = max(l.more, share)
		wanted += l.more
	}
	request := Read{
		Owner: c.members.owner, Lanes: make([]LaneRead, 0, len(usable)), MaxBytes: c.config.MaxBytes - c.bytes,
	}
	reads := make([]laneRead, 0, len(usable))
	for _, l := range usable {
		more := l.more
		if wanted > room {
			more = max(1, more*room/wanted)
		}
		limit := l.bounded(more, l.unsettled)
		read := LaneRead{Lane: l.number, W: l.w, C: l.c, Limit: limit, Window: c.movingWindow(l.w, l.c)}
		request.Lanes = append(request.Lanes, read)
		reads = append(reads, laneRead{LaneRead: read, lane: l, generation: l.generation})
	}
	return request, reads, all
}

// manyLanes is more than there are.
const manyLanes = 1 << 14

// beginRead numbers a read.
func (c *Core) beginRead() int {
	c.reader.number++
	c.reader.running = append(c.reader.running, c.reader.number)
	return c.reader.number
}

// endRead forgets settled rows that no running read can show any more.
func (c *Core) endRead(number int) {
	r := &c.reader
	r.running = slices.DeleteFunc(r.running, func(n int) bool { return n == number })
	kept := r.settled[:0]
	for _, s := range r.settled {
		if len(r.running) > 0 && r.running[0] <= s.reads {
			kept = append(kept, s)
		} else {
			s.row.lane.forget(s.row)
		}
	}
	clear(r.settled[len(kept):])
	r.settled = kept
}

// readable tells whether an answer can be used. One that is not in the order asked for would leave rows behind
// bounds that it moves.
func (c *Core) readable(number int, reads []laneRead, answer ReadAnswer, err error) bool {
	next := 0
	for i := range answer.Events {
		for next < len(reads) && reads[next].lane.number != answer.Events[i].Lane {
			next++
		}
	}
	inOrder := next < len(reads)
	if err == nil && inOrder && c.isOfFence(answer.Incarnation) {
		return true
	}
	if err == nil && !inOrder {
		c.alarm(0, "a read was answered out of order")
	}
	c.endRead(number)
	c.forgetFence()
	return false
}

// takeRows takes in the rows that are not in memory yet, and notes how far each lane was read. By is the
// route whose own reader read them, nil for the main read.
func (c *Core) takeRows(reads []laneRead, answer ReadAnswer, by *route) (fresh int) {
	resuming := by == nil && slices.ContainsFunc(c.ordered, func(r *route) bool { return len(r.resume) > 0 })
	for i := range reads {
		if slices.Contains(answer.Lost, reads[i].lane.number) {
			c.lose(reads[i].lane, "a read found the lane taken")
		}
	}
	next := 0
	for i := range answer.Events {
		event := &answer.Events[i]
		for next < len(reads) && reads[next].lane.number != event.Lane {
			next++
		}
		read := &reads[next]
		read.count++
		read.last = event.Seq
		if !read.current(by) || !c.takes(read.lane, event, resuming) {
			continue
		}
		r := &row{Event: *event, lane: read.lane}
		c.remember(r)
		c.reader.fresh = append(c.reader.fresh, r)
		fresh++
	}
	if answer.Stopped {
		reads[next].Limit = reads[next].count // cut here
		reads[next].tooMany = true
		for i := next + 1; i < len(reads); i++ {
			reads[i].unread = true
		}
	}
	for i := range reads {
		l := reads[i].lane
		switch {
		case reads[i].tooMany: // that many fit
			l.most = max(1, reads[i].count)
		case !reads[i].unread && reads[i].full():
			c.growLane(l)
		}
		if reads[i].full() {
			l.more = min(2*l.more, c.config.Batch)
		} else {
			l.more = 0
		}
	}
	return fresh
}

// takes tells whether the main read, or a route's own, takes a row. What the main read brings of a route that
// has its own reader was asked for before that; the route's reader finds it, and what is before it.
func (c *Core) takes(l *lane, event *Event, resuming bool) bool {
	if l.lost || l.draining || l.rows[event.Seq] != nil {
		return false
	}
	if !resuming {
		return true
	}
	route := c.routeOfType(event.Type)
	return route == nil || len(route.resume) == 0
}

// moveBounds moves each lane's w and c as far as the read allows, and tells whether the next read of a lane that was
// cut begins further on.
func (c *Core) moveBounds(sent *sentRead, gone []uint64) (moved bool) {
	covered := map[*lane]bool{}
	for i := range sent.reads {
		read := &sent.reads[i]
		l := read.lane
		if !read.current(nil) || read.unread {
			continue
		}
		covered[l] = true
		l.w, l.c = sent.bounds(read, l.w, l.c, gone)
		moved = moved || len(gone) > 0 || l.c > max(read.W, read.C)
	}
	if c.reader.cursor.follow(sent, gone) {
		for _, l := range c.sorted {
			if !covered[l] {
				l.c = l.w
			}
		}
	}
	return moved
}

// bounds are where the next read of a lane begins, given where this one did. A cut read is complete only up to its last
// row, or to the end of its window. When a writer had ended, the read went back to its low; what it did not reach stays
// below c.
func (s *sentRead) bounds(read *laneRead, w, c int64, gone []uint64) (_, _ int64) {
	cut := read.cut()
	w = max(w, min(s.safe, cut))
	if len(gone) > 0 {
		c = min(c, cut)
	}
	if s.promotes {
		c = min(s.cursor, cut)
	}
	return w, max(c, w)
}

// follow takes in which writers had ended, and that the cursors were moved. It tells whether those of lanes that the
// read did not cover are void.
func (k *cursor) follow(sent *sentRead, gone []uint64) (void bool) {
	ended := func(w OpenWriter) bool { return slices.Contains(gone, w.XID) }
	if len(gone) > 0 {
		k.except = slices.DeleteFunc(slices.Clone(k.except), ended)
	}
	if sent.promotes {
		k.fence = sent.fence
		k.except = slices.DeleteFunc(slices.Clone(sent.except), ended)
	}
	return len(gone) > 0 || sent.promotes
}

// paceReads decides when to read again: at once while there is more, soon after something was found, and
// ever later while nothing is.
func (c *Core) paceReads(now time.Duration, fresh int, more, beyond bool) {
	r := &c.reader
	if fresh > 0 {
		r.inVain = 0
	} else if r.rung {
		r.inVain++
	}
	r.rung = false
	switch {
	case more && fresh > 0:
		r.idle, r.at = c.config.MinPoll, now
		if beyond { // until a fence has passed them, the same rows come with every read
			c.hurryFence(now, c.config.MinPoll)
			r.after = c.fence.number + 1
		}
	case fresh > 0:
		r.idle, r.at = c.config.MinPoll, now+c.config.MinPoll
		c.hurryFence(now, c.config.FencePeriod)
	default:
		r.at = now + c.jitter(r.idle)
		r.idle = min(2*r.idle, c.config.Poll)
	}
}

// forgetAll drops rows from memory.
func (c *Core) forgetAll(rows []*row) {
	for _, r := range rows {
		if !r.lane.lost {
			c.forget(r)
		}
	}
}

// passBarrier makes sure that what was read is durable before any of it is published: an application may
// commit without waiting for the disk, and then a crash takes back a row that others have seen.
func (c *Core) passBarrier(now time.Duration) {
	r := &c.reader
	if len(r.fresh) == 0 || c.shut(&r.barrier, now) {
		return
	}
	r.passing, r.fresh = r.fresh, nil
	incarnation := c.fence.incarnation // of all that is fresh, because the answers of others are not taken
	begin(c, OpBarrier, &r.barrier,
		func(ctx context.Context, store Store) (nothing, error) {
			return nothing{}, store.Barrier(ctx, incarnation)
		},
		func(now time.Duration, _ nothing, err error) {
			rows := r.passing
			r.passing = nil
			if err != nil { // the rows may be gone with the server that showed them: they are read again
				c.forgetAll(rows)
				c.forgetAll(r.fresh)
				r.fresh = nil
				return
			}
			for _, row := range rows {
				if !row.lane.lost && !row.forgotten {
					c.admit(now, row)
				}
			}
		})
}
