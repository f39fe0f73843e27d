package check

import (
	"cmp"
	"math"
	"slices"
)

// never is the first delivery of an event that is still to be delivered.
const never = math.MaxUint64

// checkOrder compares first deliveries with versions, per aggregate and topic.
func (c *Checker) checkOrder() {
	var ordered []uint32
	for e := range c.entries.all {
		if e.is(committed) && e.version != 0 {
			ordered = append(ordered, e.self)
		}
	}
	slices.SortFunc(ordered, func(i, j uint32) int {
		a, b := c.entries.at(i), c.entries.at(j)
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.version, b.version))
	})
	for begin := 0; begin < len(ordered); {
		group := c.entries.at(ordered[begin]).group
		end := begin
		for end < len(ordered) && c.entries.at(ordered[end]).group == group {
			end++
		}
		c.checkGroup(ordered[begin:end])
		begin = end
	}
}

// line is what a group's later events must not come before.
type line struct {
	latest uint64 // the latest first delivery of a lower version
	event  *entry
	// passed are lower versions that stopped holding others up at a known arrival; there are few.
	passed []*entry
}

// checkGroup takes the events of one aggregate and topic by version. Those of equal version are checked
// before any of them joins the line.
func (c *Checker) checkGroup(events []uint32) {
	var before line
	versions := 0
	for begin := 0; begin < len(events); {
		version := c.entries.at(events[begin]).version
		end, seen := begin, false
		for ; end < len(events) && c.entries.at(events[end]).version == version; end++ {
			e := c.entries.at(events[end])
			seen = seen || e.first != 0
			c.checkPosition(&before, e)
		}
		if seen {
			versions++
		}
		for _, at := range events[begin:end] {
			c.join(&before, c.entries.at(at))
		}
		begin = end
	}
	if versions >= 2 {
		c.verdict.counts[OrderedAggregates]++
	}
}

// checkPosition counts an event that was delivered before one that it had to wait for.
func (c *Checker) checkPosition(before *line, e *entry) {
	if e.first == 0 {
		return
	}
	if before.latest > e.first {
		c.outOfOrder(e, before.event)
		return
	}
	for _, p := range before.passed {
		if (p.first == 0 || p.first > e.first) && e.first < c.deadRecords[p.self].passedFrom {
			c.outOfOrder(e, p)
			return
		}
	}
}

// join makes later versions wait for this one.
func (c *Checker) join(before *line, e *entry) {
	if d := c.deadRecords[e.self]; d != nil && d.passed {
		if d.passedFrom > 0 {
			before.passed = append(before.passed, e)
		}
		return
	}
	if at := firstOf(e); at > before.latest {
		before.latest, before.event = at, e
	}
}

// firstOf is when an event was first delivered: never, if that is still to happen, and 0 if it will not
// happen: it is lost, which is counted elsewhere, or dead without blocking.
func firstOf(e *entry) uint64 {
	switch {
	case e.first != 0:
		return e.first
	case e.is(hasRow) && (e.state.open() || e.state == DeadBlocking):
		return never
	default:
		return 0
	}
}

func (c *Checker) outOfOrder(e, lower *entry) {
	if lower.first == 0 {
		c.countf(OrderViolations, e.id, "version %d was delivered at %d, version %d (%s) never was", e.version, e.first,
			lower.version, lower.id)
		return
	}
	c.countf(OrderViolations, e.id, "version %d was delivered at %d, version %d (%s) only at %d", e.version, e.first,
		lower.version, lower.id, lower.first)
}
