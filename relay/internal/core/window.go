package core

import (
	"slices"
	"time"
)

// A read walks over what is settled above its bound: all that was published since a writer began that has ended now,
// or since the last owner told its floor. So it looks at a window of numbers, and goes on from there. The numbers may
// be far apart, as those of a copy from which most was deleted: then the windows are larger, and no more than these.
const mostWindows = 128

// window is how many numbers a read looks at that begins there, or behind it.
func (c *Core) window(from int64) int64 {
	if c.config.NoWatermark {
		return 0
	}
	return max(1, max(c.config.Window, (c.fence.last-from)/mostWindows)>>c.reader.narrow)
}

// movingWindow is that of a read whose bounds can move to its end. Where they cannot there is none: who has drawn a
// number and has no transaction id yet keeps them where they are, and what is behind the window would never be read.
func (c *Core) movingWindow(from, cursor int64) int64 {
	window, bound, reach := c.window(from), max(from, cursor), c.fence.safe
	if c.fence.hasCursor {
		reach = max(reach, c.fence.cursor)
	}
	if reach <= bound && bound+window < c.fence.last {
		return 0
	}
	return window
}

// safeWindow is the same for a reader that has no cursor, and goes on only where everything has been seen. Where a
// writer is open in the window there is none.
func (c *Core) safeWindow(from int64) int64 {
	if window := c.window(from); from+window <= c.fence.safe {
		return window
	}
	return 0
}

// mostNarrow is how often a window is halved.
const mostNarrow = 8

// measure takes in up to where each lane was looked at. The statement began at the low of the writers that had ended.
// What is above the last number of the fence, whoever reads next finds.
func (s *sentRead) measure(gone []uint64) {
	low := uncut
	for _, w := range s.writers {
		if slices.Contains(gone, w.XID) {
			low = min(low, w.Low)
		}
	}
	for i := range s.reads {
		read := &s.reads[i]
		read.top = uncut
		if top := max(read.W, min(read.C, low)) + read.Window; read.Window > 0 && top < s.last {
			read.top = top
		}
	}
}

// readOn has the next window read at once, if the bounds have moved; if not, a fence must pass what was read.
func (c *Core) readOn(now time.Duration, moved bool) {
	r := &c.reader
	r.idle, r.at = c.config.MinPoll, now
	if !moved {
		c.hurryFence(now, c.config.MinPoll)
		r.after = c.fence.number + 1
	}
}

// isWindow tells whether the read ended with its window, and there is more behind it.
func (l *laneRead) isWindow() bool { return !l.unread && !l.full() && l.top != uncut }
