package core

import (
	"context"
	"slices"
	"time"
)

// sweepFloors looks at what must not be there: ready rows at or below a lane's floor. It looks at every number soon
// after it has sunk below it, whoever held the lane then, and goes round all others slowly: a floor may be wrong that
// was right when they were looked at, as after a restore. Each number is walked over.
func (c *Core) sweepFloors(now time.Duration) {
	if c.stopping || len(c.lanes) == 0 || !c.fence.known || c.shut(&c.held.sweep, now) {
		return
	}
	if now < c.held.sweepAt {
		c.wakeAt(c.held.sweepAt)
		return
	}
	c.held.sweepAt = now + c.jitter(c.config.SweepPeriod)
	c.largest /= 2 // what was large long ago
	c.blockHolds()
	floors, lanes := c.toSweep(now)
	if len(floors) == 0 {
		return
	}
	sweep := Sweep{Owner: c.members.owner, Floors: floors, Limit: asksOfALook}
	begin(c, OpSweep, &c.held.sweep,
		func(ctx context.Context, store Store) (SweepAnswer, error) {
			return store.Sweep(ctx, sweep)
		},
		func(_ time.Duration, answer SweepAnswer, err error) {
			if err != nil || !c.sees(lanes, answer.Seen) {
				return
			}
			for i, l := range lanes {
				// As many as were asked for: there may be more, in other lanes as well.
				if to := floors[i]; len(answer.Found) < sweep.Limit && to.Above <= l.swept {
					l.swept = max(l.swept, to.Seq)
				}
			}
			for _, f := range answer.Found {
				l := c.lanes[f.Lane]
				if l == nil || f.Seq > l.floor {
					continue
				}
				l.swept = min(l.swept, f.Seq-1) // it is looked at again until it is settled
				if l.rows[f.Seq] != nil {
					continue
				}
				c.alarm(f.Lane, "a ready event was found below the lane's floor; it is published now")
				c.goBack(l, f.Seq-1)
			}
		})
}

// toSweep are the numbers to look at now, and the lane of each: what has sunk since the last look, and a part of the
// older ones.
func (c *Core) toSweep(now time.Duration) (floors []Floor, lanes []*lane) {
	add := func(l *lane, above, to int64) {
		if to > above {
			lanes, floors = append(lanes, l), append(floors, Floor{Lane: l.number, Above: above, Seq: to})
		}
	}
	from, older := c.held.sweptFrom, false
	c.held.sweptFrom += sweepOld
	for _, l := range c.sorted {
		if !l.opened || l.draining {
			continue
		}
		to := min(l.floor, l.swept+sweepWindow)
		if to < l.floor { // the rest soon
			c.held.sweepAt = min(c.held.sweepAt, now+c.jitter(sweepSoon))
		}
		add(l, l.swept, to)
		add(l, from, min(from+sweepOld, l.swept))
		older = older || l.swept > from+sweepOld
	}
	if !older { // begin again
		c.held.sweptFrom = 0
	}
	return floors, lanes
}

// goBack has a lane read from there again, by all who read it: nobody knows which topic it is about.
func (c *Core) goBack(l *lane, from int64) {
	l.w, l.c = min(l.w, from), min(l.c, from)
	l.generation++
	for _, r := range c.ordered {
		if at := r.place(l); at != nil {
			at.from = min(at.from, from)
			at.goneBack()
		}
	}
}

// buryAged ends parked events of unknown types that are too old.
func (c *Core) buryAged(now time.Duration) {
	if c.stopping || c.config.UnknownTypeMaxAge < 0 || len(c.lanes) == 0 || !c.fence.known || c.shut(&c.held.aged, now) {
		return
	}
	if now < c.held.agedAt {
		c.wakeAt(c.held.agedAt)
		return
	}
	c.held.agedAt = now + c.jitter(c.config.SweepPeriod)
	old := OldParked{Owner: c.members.owner, Age: c.config.UnknownTypeMaxAge, Limit: min(c.config.HeldPage, mostAged)}
	var lanes []*lane
	old.Exclude = slices.Concat(c.config.Routes.Types(), c.typesPausedByOperators())
	for _, l := range c.agedInTurn() {
		lanes, old.Lanes = append(lanes, l), append(old.Lanes, LaneFrom{Lane: l.number, After: l.aged})
	}
	begin(c, OpOldParked, &c.held.aged,
		func(ctx context.Context, store Store) (ParkedAnswer, error) { return store.OldParked(ctx, old) },
		func(now time.Duration, answer ParkedAnswer, err error) {
			if err != nil || !c.sees(lanes, answer.Seen) {
				return
			}
			c.agedPage(now, lanes, answer.Looked >= old.Limit, answer.Page)
			for i := range answer.Events {
				c.bury(now, &answer.Events[i])
			}
		})
}

// mostAged is how many rows are looked at that were parked long ago: all of them may have to die, and are in memory
// then.
const mostAged = 500

// agedInTurn lists the lanes to look at, beginning with the one in which the last page ended.
func (c *Core) agedInTurn() (lanes []*lane) {
	for _, l := range c.sorted {
		if l.opened && !l.draining {
			lanes = append(lanes, l)
		}
	}
	if first := slices.IndexFunc(lanes, func(l *lane) bool { return l.number >= c.held.agedLane }); first > 0 {
		lanes = slices.Concat(lanes[first:], lanes[:first])
	}
	return lanes
}

// agedPage takes in how far a look came. The rest of a full page follows soon.
func (c *Core) agedPage(now time.Duration, lanes []*lane, full bool, page Page) {
	for _, l := range lanes {
		if full && l.number == page.Lane {
			l.aged, c.held.agedLane = page.End, l.number
			c.held.agedAt = min(c.held.agedAt, now+c.jitter(sweepSoon))
			return
		}
		l.aged = HeldPlace{}
	}
}

// bury ends a parked event of an unknown type that is too old.
func (c *Core) bury(now time.Duration, event *Event) {
	l := c.lanes[event.Lane]
	_, known := c.config.Routes.Route(event.Type)
	if known || c.spared(event.Type) || l == nil || !l.opened || l.draining || l.rows[event.Seq] != nil ||
		c.tooEarly(now, l) > 0 {
		return
	}
	r := &row{Event: *event, lane: l, held: true}
	c.remember(r)
	key := lineKey{Aggregate: r.Aggregate}
	c.hold(l, key, 0).addType(r.Type)
	c.die(key, r, r.Attempts, reasonUnknownType, "no relay came to know the type in time")
}
