package core

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A read can time out because its answer is large: some rows of many megabytes, on a slow link. So after a read that
// failed, each of its lanes is asked for half as many rows, down to one, and the lanes are read one by one for a round.
// One that fails alone then, or has more than it is asked for, is read apart, by a reader of its own, and holds up
// nobody else.

// bounded says how many rows to ask of a lane that has so many in memory, which come again. Zero: none now, because the
// answer would be those. Only a lane that is known to be too large waits for them: one event whose publish hangs must
// not keep the others of its lane from being read.
func (l *lane) bounded(more, unsettled int) int {
	switch {
	case l.most == 0:
		return more + unsettled
	case !l.apart:
		return max(min(more+unsettled, l.most), unsettled+1)
	case unsettled >= l.most:
		return 0
	default:
		return min(more+unsettled, l.most)
	}
}

// halve takes in that a read of the lane failed, and with how many rows.
func (l *laneRead) halve() {
	l.lane.most = max(1, l.Limit/2)
	l.lane.tooMany, l.lane.wentWell = l.Limit, 0
}

// smallerSoon is how soon a read is tried again that asks for less than the one that failed.
const smallerSoon = time.Second

// hurryAgain brings a read forward that failed, as long as the next one asks for less: what was too much may be all
// that was wrong, and a link that bears one row of fifty would take a minute to be found out.
func (c *Core) hurryAgain(g *gate, reads []laneRead) {
	if slices.ContainsFunc(reads, func(l laneRead) bool { return l.Limit > 1 }) {
		g.retryAt = min(g.retryAt, c.now+c.jitter(smallerSoon))
	}
}

// readsToTryAgain is after how many reads that went well as many rows are asked for again as were once too many. A read
// that fails takes as long as a statement may, and makes the relay forget its fence.
const readsToTryAgain = 100

// growLane takes in that a read brought all the rows that were asked for. The next may have more, up to three quarters
// of what was too many.
func (c *Core) growLane(l *lane) {
	if l.most == 0 {
		return
	}
	more := l.most + 1 + l.most/8
	if l.tooMany > 0 && more > l.tooMany-l.tooMany/4 {
		if l.wentWell++; l.wentWell < readsToTryAgain {
			return
		}
		l.tooMany = 0
	}
	if l.most = more; l.most >= c.config.Batch+c.config.MaxInFlight {
		l.most = 0
	}
}

// readFailed takes in that the main read failed. An answer of another server, or one that came when the fence was
// forgotten, is no failure: it says nothing about its size.
func (c *Core) readFailed(reads []laneRead) {
	r := &c.reader
	for i := range reads {
		reads[i].halve()
	}
	r.narrow = min(r.narrow+1, mostNarrow)
	c.hurryAgain(&r.gate, reads)
	if r.gate.failures > 1 { // one after the other: there may be too much in all lanes
		for _, l := range c.sorted {
			if half := max(1, reads[0].Limit/2); l.most == 0 || l.most > half {
				l.most = half
			}
		}
	}
	if len(reads) == 1 && r.gate.failures == 1 { // others were read since the last failure: it is about this lane
		reads[0].lane.apart = true
	}
	r.next = reads[len(reads)-1].lane.number + 1
	r.alone, r.lanes = len(c.sorted), max(1, len(reads)/2)
}

// inTurn picks the lanes that the main read reads now: all of them, or as many as may be, beginning behind those that
// it read last.
func (r *reader) inTurn(usable []*lane) (_ []*lane, all bool) {
	first := slices.IndexFunc(usable, func(l *lane) bool { return l.number >= r.next })
	if first > 0 {
		usable = slices.Concat(usable[first:], usable[:first])
	}
	n := min(r.lanes, len(usable))
	if r.alone > 0 {
		n = min(1, len(usable))
	}
	return usable[:n], n == len(usable)
}

// wentWell takes in a main read that was answered. The next one begins with what this one left out. One that goes on in
// the next window has not seen yet how large the lane is.
func (c *Core) wentWell(reads []laneRead, goesOn bool) {
	r := &c.reader
	r.next = reads[len(reads)-1].lane.number + 1
	for i := range reads {
		if reads[i].unread {
			r.next = reads[i].lane.number
			break
		}
	}
	r.narrow = max(0, r.narrow-1)
	switch {
	case r.alone == 0:
		r.lanes = min(manyLanes, r.lanes+1+r.lanes/4)
	case goesOn:
		r.next = reads[0].lane.number
	default:
		r.alone--
		reads[0].lane.apart = c.burdened(&reads[0])
	}
}

// readApart reads one of the lanes that are read by themselves, in turn. One that fails keeps only itself back.
func (c *Core) readApart(now time.Duration) {
	r := &c.reader
	if c.stopping || c.room() == 0 || !c.fenceServes() || len(r.running) > mostReads {
		return
	}
	var lanes []*lane
	for _, l := range c.sorted {
		if l.apart && l.opened && !l.draining && c.mayPublish(l, now) && l.bounded(1, l.unsettled) > 0 &&
			!c.shut(&l.reading, now) {
			lanes = append(lanes, l)
		}
	}
	if len(lanes) == 0 {
		return
	}
	if now < r.apartAt {
		c.wakeAt(r.apartAt)
		return
	}
	at := max(0, slices.IndexFunc(lanes, func(l *lane) bool { return l.number >= r.nextApart }))
	l := lanes[at]
	r.nextApart = l.number + 1
	limit := l.bounded(min(max(l.more, c.shareOfALane()), c.room()), l.unsettled)
	read := LaneRead{Lane: l.number, W: l.w, C: l.w, Limit: limit, Window: c.safeWindow(l.w)}
	request := Read{
		Owner:    c.members.owner,
		Lanes:    []LaneRead{read},
		Exclude:  c.excluded(),
		MaxBytes: c.config.MaxBytes - c.bytes,
	}
	sent := sentRead{
		reads: []laneRead{{LaneRead: read, lane: l, generation: l.generation}}, last: c.fence.last, safe: c.fence.safe,
		number: c.beginRead(),
	}
	begin(c, OpRead, &l.reading,
		func(ctx context.Context, store Store) (ReadAnswer, error) { return store.Read(ctx, request) },
		func(now time.Duration, answer ReadAnswer, err error) {
			if !c.readable(sent.number, sent.reads, answer, err) {
				if err != nil {
					sent.reads[0].halve()
					c.hurryAgain(&l.reading, sent.reads)
				}
				return
			}
			c.tookApart(now, &sent, answer)
		})
}

// tookApart takes in what a lane that is read by itself has shown. It goes back to the main read when there is nothing
// more in it, or when it bears what the others are asked for.
func (c *Core) tookApart(now time.Duration, sent *sentRead, answer ReadAnswer) {
	read := &sent.reads[0]
	l := read.lane
	sent.measure(nil)
	fresh := c.takeRows(sent.reads, answer, nil)
	if read.current(nil) {
		l.w = max(l.w, min(sent.safe, read.cut()))
		l.c = max(l.c, l.w)
	}
	c.endRead(sent.number)
	l.apart = c.burdened(read)
	c.reader.apartAt = now
	if fresh == 0 && read.cut() == uncut {
		c.reader.apartAt = now + c.config.MinPoll
	}
	if !l.apart {
		c.reader.wake(now, c.config.MinPoll)
	}
}

// burdened tells whether there is more in a lane than a read brought, and fewer rows may be asked of it than of others.
func (c *Core) burdened(read *laneRead) bool {
	l := read.lane
	return read.cut() != uncut && l.most > 0 && l.most < c.shareOfALane()
}

// shareOfALane is how many rows of each lane a read asks for while none has more than others.
func (c *Core) shareOfALane() int { return max(1, c.config.Batch/cmp.Or(len(c.sorted), 1)) }
