package core

import (
	"context"
	"slices"
	"time"
)

// resume is from where a route's reader reads a lane: everything of the route at or below it is settled,
// held or in memory.
type resume struct {
	lane       *lane
	from       int64
	c          int64 // reads begin here, as long as the route's excepted writers are open
	generation int   // changes when from went back
	more       int   // rows to read beyond those in memory
	complete   bool  // a read has shown the lane to its end, since from went back
}

// detach takes a route out of the main read, which moves on without it, and drops what is queued for it. Its own
// reader finds that again, and ends when it has caught up.
func (c *Core) detach(now time.Duration, r *route) {
	if r.onlyCopies() {
		return
	}
	for _, l := range c.sorted {
		if r.place(l) == nil {
			r.resume = append(r.resume, resume{lane: l, from: l.w})
		}
	}
	// What was read and is not decided on goes first, or the route's reader would take it for known.
	for _, rows := range [...][]*row{c.reader.fresh, c.reader.passing} {
		for _, row := range rows {
			if c.routeOfType(row.Type) == r && !row.lane.lost {
				c.forget(row)
			}
		}
	}
	for _, l := range c.linesOf(r) {
		var held *hold
		c.dropQueued(l, func(row *row) {
			held = row.lane.holds[l.key]
			c.forget(row)
		})
		if held != nil {
			c.reschedule(now, held)
		}
	}
	for r.waiting.len() > 0 {
		l := r.waiting.pop()
		l.queued = false
		c.run(l) // what came back while it was paused
	}
}

// goneBack takes in that from is lower now.
func (at *resume) goneBack() {
	at.generation++
	at.complete, at.c = false, 0
}

// place is where the route's reader is in the lane, nil if the main read reads the route.
func (r *route) place(l *lane) *resume {
	for i := range r.resume {
		if r.resume[i].lane == l {
			return &r.resume[i]
		}
	}
	return nil
}

// readRoutes reads on for routes that were paused, until they have caught up with the main read.
func (c *Core) readRoutes(now time.Duration) {
	for _, r := range c.ordered {
		if len(r.resume) == 0 || r.paused || c.stopping || !c.fenceServes() || c.room() == 0 || c.shut(&r.gate, now) {
			continue
		}
		if running := len(c.reader.running); running > mostReads { // leave connections for the others
			continue
		}
		if c.hasEnough(now, r) {
			continue
		}
		rows, bytes := c.shareOf(r)
		if rows <= 0 || bytes <= 0 {
			continue
		}
		if now < r.readAt {
			c.wakeAt(r.readAt)
			continue
		}
		if c.fence.number < r.after {
			continue
		}
		c.readRoute(now, r, rows, bytes)
	}
}

// shareOf is how many more rows and bytes a route's own reader may bring into memory. All such readers together may
// have half of the room: the rest is for the topics of the main read. Else a slow topic with a backlog would fill the
// memory again that it was taken out of the main read for.
func (c *Core) shareOf(r *route) (rows, bytes int) {
	parts := 1
	if c.topics > 1 {
		parts = 0
		for _, other := range c.ordered {
			if len(other.resume) > 0 && !other.paused {
				parts += 2
			}
		}
	}
	rows = min(c.room(), max(1, c.config.MaxInFlight/parts)-r.rows)
	bytes = min(c.config.MaxBytes-c.bytes, max(1, c.config.MaxBytes/parts)-r.bytes)
	if r.limit != nil {
		rows = min(rows, r.limit.enough()-(r.rows-r.heldRows))
	}
	if bytes < c.config.MaxBytes/parts/4 { // not worth a read
		return 0, 0
	}
	return rows, bytes
}

// readRoute reads on for a route, so many rows and bytes at most.
func (c *Core) readRoute(now time.Duration, r *route, room, bytes int) {
	// Everything but what is known to go elsewhere: an event of an unknown type holds up what is behind it in
	// its aggregate, so it must be met in order.
	request := Read{Owner: c.members.owner, MaxBytes: bytes}
	for _, eventType := range c.config.Routes.Types() {
		if !slices.Contains(r.types, eventType) {
			request.Exclude = append(request.Exclude, eventType)
		}
	}
	round := r.round
	r.turn++
	places, wanted := c.placesToRead(now, r, room)
	sent := c.sending(&r.cursor, r.alone == 0)
	sent.number = c.reader.number + 1
	request.Writers = r.cursor.except
	for _, at := range places {
		more := at.more
		if wanted > room {
			more = max(1, more*room/wanted)
		}
		limit := at.lane.bounded(more, at.lane.unsettledOf(r, max(at.from, at.c)))
		read := LaneRead{
			Lane: at.lane.number, W: at.from, C: at.c, Limit: limit, Window: c.movingWindow(at.from, at.c),
		}
		request.Lanes = append(request.Lanes, read)
		sent.reads = append(sent.reads, laneRead{LaneRead: read, lane: at.lane, generation: at.generation})
	}
	if len(sent.reads) == 0 {
		return
	}
	c.beginRead()
	begin(c, OpRead, &r.gate,
		func(ctx context.Context, store Store) (ReadAnswer, error) { return store.Read(ctx, request) },
		func(now time.Duration, answer ReadAnswer, err error) {
			if !c.readable(sent.number, sent.reads, answer, err) {
				if err != nil {
					for i := range sent.reads {
						sent.reads[i].halve()
					}
					r.alone = len(r.resume)
				}
				return
			}
			if r.round != round { // paused meanwhile: the reader began anew, further back
				c.endRead(sent.number)
				return
			}
			sent.measure(answer.Gone)
			fresh := c.takeRows(sent.reads, answer, r)
			c.endRead(sent.number)
			c.caughtUp(now, r, &sent, fresh, answer.Gone)
		})
}

// placesToRead lists where a route's reader reads now, each time another lane first, so that its head is the next
// probe, and how many rows that are in all.
func (c *Core) placesToRead(now time.Duration, r *route, room int) (places []*resume, wanted int) {
	share := max(1, min(room, c.config.Batch)/len(r.resume))
	if r.probing {
		share = max(1, min(share, probesALane+r.allowance/len(r.resume)))
	}
	for i := range r.resume {
		at := &r.resume[(i+r.turn)%len(r.resume)]
		l := at.lane
		if !l.opened || l.draining || !c.mayPublish(l, now) || l.bounded(1, l.unsettledOf(r, max(at.from, at.c))) == 0 {
			continue
		}
		if at.more = max(at.more, share); r.probing {
			at.more = share
		}
		places, wanted = append(places, at), wanted+at.more
		if r.alone > 0 {
			break
		}
	}
	return places, wanted
}

// movePlaces moves the places of a route's reader as far as the read allows. It tells whether there is more behind a
// window, and whether the next read of a lane that was cut begins further on.
func (c *Core) movePlaces(r *route, sent *sentRead, gone []uint64) (further, moved bool) {
	covered := map[*lane]bool{}
	for i := range sent.reads {
		read := &sent.reads[i]
		if !read.current(r) || read.unread {
			continue
		}
		at := r.place(read.lane)
		covered[at.lane] = true
		at.from, at.c = sent.bounds(read, at.from, at.c, gone)
		moved = moved || len(gone) > 0 || at.c > max(read.W, read.C)
		switch {
		case read.full():
			at.more = min(2*at.more, c.config.Batch)
		case read.cut() == uncut:
			at.complete, at.more = true, 0
		default: // the end of a window
			further = true
		}
	}
	if r.cursor.follow(sent, gone) {
		for i := range r.resume {
			if at := &r.resume[i]; !covered[at.lane] {
				at.c = at.from
			}
		}
	}
	return further, moved
}

// caughtUp takes in a read of a route's reader, and gives the route back to the main read once every lane was shown to
// its end. The main read then begins each lane at the lower of the two places.
func (c *Core) caughtUp(now time.Duration, r *route, sent *sentRead, fresh int, gone []uint64) {
	further, moved := c.movePlaces(r, sent, gone)
	if r.alone > 0 && further && moved { // nobody has seen yet how large the lane is
		r.turn--
	} else {
		r.alone = max(0, r.alone-1)
	}
	atEnd := !slices.ContainsFunc(r.resume, func(at resume) bool { return !at.complete })
	// it has carried all there was
	if atEnd && r.probing && r.allowance > 1 && !r.rejectsAll() && fresh == 0 && r.inFlight == 0 &&
		r.waiting.len() == 0 {
		r.probing, r.pauses = false, 0
	}
	if atEnd && !r.probing && r.limit == nil {
		for _, at := range r.resume {
			at.lane.w = min(at.lane.w, at.from)
			at.lane.c = at.lane.w
			at.lane.generation++
		}
		r.resume, r.cursor.except = nil, nil
		c.reader.at = min(c.reader.at, now)
		return
	}
	if further && !moved { // a fence must pass what was read
		r.readAt, r.after = now, c.fence.number+1
		c.hurryFence(now, c.config.MinPoll)
		return
	}
	if fresh > 0 || further || r.alone > 0 {
		r.idle, r.readAt = c.config.MinPoll, now
		if atEnd {
			r.readAt += c.config.MinPoll
		}
		return
	}
	r.readAt = now + c.jitter(r.idle)
	r.idle = min(2*r.idle, c.config.Poll)
}
