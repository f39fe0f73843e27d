package core

import (
	"context"
	"math"
	"slices"
	"time"
)

// fence is what is known about numbers that are drawn and not visible yet. It belongs to one
// incarnation of the server and is forgotten with any error of the connection.
type fence struct {
	gate        gate
	dueAt       time.Duration
	beganAt     time.Duration
	incarnation string
	known       bool
	number      int                   // counts the fences
	listings    int                   // since the last time that all was forgotten
	last        int64                 // the sequence's value at the last fence
	seenAt      time.Duration         // when the last fence began
	open        map[Writer]openWriter // by name, as listed at the last fence
	safe        int64                 // nothing can still appear at or below it
	// A read that begins now may afterwards begin at cursor, as long as all of except are open still.
	hasCursor bool
	cursor    int64
	except    []OpenWriter
}

// openWriter has drawn numbers above low, and none at or below it.
type openWriter struct {
	xid   uint64
	low   int64
	since time.Duration // when it was first listed
}

// keepFence lists the open writers every period, while there are lanes to read.
func (c *Core) keepFence(now time.Duration) {
	if c.stopping || len(c.lanes) == 0 || c.shut(&c.fence.gate, now) {
		return
	}
	if now < c.fence.dueAt {
		c.wakeAt(c.fence.dueAt)
		return
	}
	c.fence.beganAt = now
	c.fence.dueAt = now + c.config.FencePeriod
	if c.reader.idle > c.config.MinPoll { // nothing new: what the next read finds is not far above the last fence
		c.fence.dueAt = now + idleFence*c.config.FencePeriod
	}
	begin(c, OpFence, &c.fence.gate,
		func(ctx context.Context, store Store) (Fence, error) { return store.Fence(ctx) },
		func(now time.Duration, seen Fence, err error) {
			switch {
			case err != nil:
				c.forgetFence()
			case seen.Standby:
				c.forgetFence()
				c.fence.dueAt = now + idleFence*c.config.FencePeriod
				c.alarm(0, "the database is in recovery: the relay needs the primary")
			default:
				c.fenced(seen)
			}
		})
}

// isOfFence tells whether an answer is of the server that the fence is about. Behind a pooler another server can
// answer without any call having failed, and an answer of the one before can come late. Nothing of either is used:
// bounds, floors and what is in memory are about one server only. The next fence tells which one that is now.
func (c *Core) isOfFence(incarnation string) bool {
	if c.fence.known && incarnation == c.fence.incarnation {
		return true
	}
	c.refused = true
	if c.fence.known {
		c.forgetFence()
	}
	return false
}

// forgetFence drops what was known: the server may be another one now. Lanes are read from their floor, and what is
// read and not durable for sure is read again.
func (c *Core) forgetFence() {
	c.fence.known, c.fence.hasCursor, c.fence.except = false, false, nil
	c.fence.listings, c.fence.dueAt = 0, 0
	c.fence.open = map[Writer]openWriter{}
	c.fence.safe = 0
	c.reader.cursor.except = nil
	c.forgetAll(c.reader.fresh)
	c.forgetAll(c.reader.passing)
	c.reader.fresh = nil
	for _, l := range c.sorted {
		l.w, l.c = l.floor, l.floor
		l.generation++
	}
	for _, r := range c.ordered {
		r.cursor.except = nil
		for i := range r.resume {
			at := &r.resume[i]
			at.from = min(at.from, at.lane.floor)
			at.goneBack()
		}
	}
}

// fenced takes in a listing. A writer that was not listed before can only have numbers above the value of
// the listing before: every number up to that was drawn by somebody who was listed then or had ended.
func (c *Core) fenced(seen Fence) {
	f := &c.fence
	restarted := f.incarnation != "" && f.incarnation != seen.Incarnation
	setBack := f.known && seen.Last < f.last
	// Another server, or the sequence was set back: numbers may come again, and what is written about this relay may be
	// older than what is known here. Only an owner that was made on this server holds lanes there.
	if setBack || c.members.made != seen.Incarnation ||
		slices.ContainsFunc(c.sorted, func(l *lane) bool { return l.server != seen.Incarnation }) {
		c.abandon(c.now, "the server was restarted, or is another one")
	}
	if restarted || setBack {
		c.forgetFence()
	}
	f.incarnation, f.seenAt = seen.Incarnation, f.beganAt
	before, first := f.last, !f.known
	open := make(map[Writer]openWriter, len(seen.Writers))
	f.safe, f.hasCursor, f.cursor, f.except = seen.Last, !first, before, nil
	for _, writer := range seen.Writers {
		low, since := before, f.beganAt
		if first {
			low = 0
		}
		if old, listed := f.listed(writer); listed {
			low, since = old.low, old.since
		}
		open[writer.name()] = openWriter{xid: writer.XID, low: low, since: since}
		f.safe = min(f.safe, low)
		switch {
		case writer.XID == 0: // a read cannot ask whether it has ended
			f.cursor = min(f.cursor, low)
		case low < f.cursor:
			f.except = append(f.except, OpenWriter{XID: writer.XID, Low: low})
		}
	}
	f.open, f.known, f.last = open, true, seen.Last
	f.number++
	if f.listings++; f.listings < enoughListings {
		f.dueAt = 0 // the next one at once: only two of them tell from where to read
	}
	if c.config.NoWatermark {
		f.safe, f.hasCursor, f.except = 0, false, nil
	}
	for _, l := range c.sorted {
		if l.crashed && l.inherited == 0 {
			l.inherited = seen.Last
		}
		// restored or copied without its sequence: what is new would be below the floor
		if l.floor > seen.Last && l.acquiredAt <= f.beganAt {
			c.alarm(l.number, "the lane's floor is above the sequence: set the sequence to the highest number in use")
			l.w, l.c, l.floor, l.swept = 0, 0, 0, 0
			l.generation++
		}
	}
}

// name is what a writer is known by: its transaction id, once it has one. Its virtual id is that of its session, and a
// prepared transaction that outlives a recovery has another one then.
func (w Writer) name() Writer {
	if w.XID != 0 {
		return Writer{XID: w.XID}
	}
	return w
}

// listed finds a writer in the listing before, in which it may have had no transaction id yet.
func (f *fence) listed(w Writer) (openWriter, bool) {
	old, is := f.open[w.name()]
	if !is {
		old, is = f.open[Writer{VXID: w.VXID}]
	}
	return old, is
}

// behind tells how far the watermark is behind the sequence, and for how long the oldest writer was seen.
func (c *Core) behind() (numbers int64, oldest time.Duration) {
	if !c.fence.known || len(c.lanes) == 0 {
		return 0, 0
	}
	for _, writer := range c.fence.open {
		oldest = max(oldest, c.now-writer.since)
	}
	return c.fence.last - c.fence.safe, oldest
}

// hurryFence brings the next fence forward, to so long after the last one.
func (c *Core) hurryFence(now, period time.Duration) {
	c.fence.dueAt = min(c.fence.dueAt, max(now, c.fence.beganAt+period))
}

// idleFence is how many periods a fence may take while nothing is found.
const idleFence = 4

// enoughListings is how many it takes to know where the open writers begin. Before that a read would walk all
// that is dead above the lane's floor.
const enoughListings = 2

// uncut is the bound of a lane that was read to its end.
const uncut = int64(math.MaxInt64)
