package core

import (
	"math"
	"slices"
	"time"
)

// Operators limit how many publishes a second begin for a topic, by all relays together. A relay hears of it as of a
// pause, and takes the share of the lanes that it holds. Nobody else holds these, so all shares together are never more
// than the limit. What a relay cannot use of its share is lost: the fleet may be slower than the limit, and not faster.
//
// A publish takes a token out of the route's bucket, and waits where there is none: beside others that wait for a place
// of the route. A limited route has a reader of its own, as one that was paused: left in the main read, its rows would
// take up the memory of all.

// bucket is how many publishes to a limited topic may begin.
type bucket struct {
	rate   float64 // of all relays, a second
	share  float64 // of this relay, when the bucket was last filled
	tokens float64
	at     time.Duration
}

// The sizes of a bucket.
const (
	// burst is for how long a share is saved up at most. Whoever wakes a little too late so loses nothing.
	burst = 100 * time.Millisecond
	// pace is the shortest pause between two looks at a bucket that was empty.
	pace = 5 * time.Millisecond
	// stock is for how long a limited route has events in memory.
	stock = 2 * time.Second
)

// keepTo takes in the limits that stand.
func (c *Core) keepTo(now time.Duration, limits []Limit) {
	for _, limit := range limits {
		r := c.routeOf(limit.Topic)
		if r.limit != nil {
			r.limit.rate = limit.Rate
			continue
		}
		r.limit = &bucket{rate: limit.Rate, at: now}
		c.limited = append(c.limited, r)
		if !r.paused && len(r.resume) == 0 {
			c.detach(now, r)
		}
	}
	c.limited = slices.DeleteFunc(c.limited, func(r *route) bool {
		if slices.ContainsFunc(limits, func(limit Limit) bool { return limit.Topic == r.topic }) {
			return false
		}
		r.limit = nil
		if !r.paused {
			c.wake(now, r)
		}
		return true
	})
}

// fillBuckets gives limited routes what has become theirs. It is asked at every step: a share that is less now was
// perhaps another relay's since the last one.
func (c *Core) fillBuckets(now time.Duration) {
	if len(c.limited) == 0 {
		return
	}
	held := 0
	for _, l := range c.sorted {
		if !l.draining { // the next owner may have it before this relay knows
			held++
		}
	}
	part := float64(held) / float64(max(held, len(c.members.view.Lanes), 1))
	for _, r := range c.limited {
		r.limit.fill(now, part)
		if enough := r.limit.enough(); !r.paused && 2*r.heldRows <= enough {
			c.lookAgain(now, r, enough-r.heldRows)
		}
	}
}

// fill adds what a part of all lanes is worth since the last time.
func (b *bucket) fill(now time.Duration, part float64) {
	share := b.rate * part
	b.tokens += min(share, b.share) * (now - b.at).Seconds()
	b.share, b.at = share, now
	b.tokens = min(b.tokens, max(1, share*burst.Seconds()))
}

// nearly allows for what is lost in computing with fractions.
const nearly = 1 - 1e-6

// mayBegin tells whether the limit of a route, if it has one, lets a publish begin.
func (r *route) mayBegin() bool { return r.limit == nil || r.limit.tokens >= nearly }

// mayBeginWithin tells whether the limit lets one begin within so long.
func (r *route) mayBeginWithin(span time.Duration) bool {
	return r.limit == nil || r.limit.tokens+r.limit.share*span.Seconds() >= nearly
}

// begins takes in that a publish begins.
func (r *route) begins() {
	if r.limit != nil {
		r.limit.tokens--
	}
}

// within is how many of so many publishes may begin.
func (r *route) within(free int) int {
	if r.limit == nil {
		return free
	}
	return min(free, int(max(0, r.limit.tokens+1-nearly)))
}

// awaitTokens asks to be woken when something that waits may begin.
func (c *Core) awaitTokens(now time.Duration) {
	for _, r := range c.limited {
		if b := r.limit; r.waiting.len() > 0 && !r.mayBegin() && b.share > 0 {
			wait := time.Duration(math.Ceil((1 - b.tokens) / b.share * float64(time.Second)))
			c.wakeAt(now + max(wait, pace))
		}
	}
}

// enough is how many rows of a limited route need to be in memory.
func (b *bucket) enough() int { return probesALane + int(b.share*stock.Seconds()) }

// hasEnough tells whether a route's own reader need not bring more now: an answer changes that.
func (c *Core) hasEnough(now time.Duration, r *route) bool {
	if r.limit != nil && !r.probing {
		return 2*(r.rows-r.heldRows) > r.limit.enough() // else each read would bring a few
	}
	slots := c.slots(now, r)
	return r.waiting.len() >= slots || c.rowsOf(r) >= 2*slots+probesALane
}

// hasEnoughHeld tells whether held rows of a limited route must wait until others are sent. They are counted by
// themselves: else those that are ready could keep them back for good.
func (c *Core) hasEnoughHeld(r *route) bool { return r.limit != nil && r.heldRows >= r.limit.enough() }

// longestTurn is for how many leases a lane whose owners died is taken care of because of what waits for its turn.
const longestTurn = 20

// awaitsTurn tells whether the first events of a lane were not sent yet because their topic is limited. Whoever holds
// it for long has not met what killed the owner before: it would be taken for calm, and die of that like all others.
func (c *Core) awaitsTurn(now time.Duration, l *lane) bool {
	if len(c.limited) == 0 || now-l.acquiredAt >= longestTurn*c.config.Lease {
		return false
	}
	if c.isUnread(l) {
		return true
	}
	var first *row
	for seq, r := range l.rows {
		if !r.held && !r.done && (first == nil || seq < first.Seq) {
			first = r
		}
	}
	if first != nil && !l.sent[first.Seq] && first.route != nil && first.route.limit != nil && !first.route.paused {
		return true
	}
	for key, h := range l.holds {
		if r := c.routes[key.topic]; r != nil && r.limit != nil && !r.paused && !h.tried && c.isBusyWith(now, h) {
			return true
		}
	}
	return false
}

// isUnread tells whether the reader of a limited topic has not got past where the owner before was. The main read, by
// which lanes are measured, moves on without it.
func (c *Core) isUnread(l *lane) bool {
	return slices.ContainsFunc(c.limited, func(r *route) bool {
		at := r.place(l)
		return !r.paused && at != nil && !at.complete && at.from <= l.began
	})
}
