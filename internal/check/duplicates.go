package check

import (
	"cmp"
	"slices"
)

// checkDuplicates counts the duplicates of committed events, and those that nothing explains.
func (c *Checker) checkDuplicates() {
	c.abandoned()
	c.unanswered()
	causes := map[uint32][]cause{}
	wanted := map[uint32]bool{}
	for _, d := range c.duplicates {
		wanted[d.entry] = true
	}
	for _, k := range c.publishing.causes {
		if wanted[k.entry] {
			causes[k.entry] = append(causes[k.entry], k)
		}
	}
	slices.SortFunc(c.duplicates, func(a, b duplicate) int {
		return cmp.Or(cmp.Compare(a.entry, b.entry), cmp.Compare(a.arrival, b.arrival))
	})
	nth := 0
	for i, d := range c.duplicates {
		if i == 0 || d.entry != c.duplicates[i-1].entry {
			nth = 0
		}
		nth++
		c.checkDuplicate(d, nth, causes[d.entry])
	}
	c.checkRequests()
}

// checkDuplicate finds out whether the nth duplicate of an event has at least n causes before it. A cause need
// not lie after the first delivery: a message that was given up may arrive after the one sent in its place.
func (c *Checker) checkDuplicate(d duplicate, nth int, causes []cause) {
	e := c.entries.at(d.entry)
	if !e.is(committed) {
		return // a phantom is counted as that
	}
	c.verdict.counts[Duplicates]++
	found := 0
	for _, k := range causes {
		if k.next <= d.arrival {
			found++
		}
	}
	for i := range c.faults {
		if found >= nth {
			return
		}
		if c.explains(&c.faults[i], e, d.arrival) {
			found++
		}
	}
	if found < nth {
		c.countf(DuplicatesUnexplained, e.id, "delivery %d is its duplicate number %d, and there are %d causes", d.arrival,
			nth, found)
	}
}

// explains tells whether a fault in the log may be why the event arrived again. Where relays said what
// they published, the publish itself is the cause, and a wide fault in the log would excuse too much.
func (c *Checker) explains(f *Fault, e *entry, arrival uint64) bool {
	if !f.Kind.duplicates() {
		return false
	}
	switch {
	case f.ID != (ID{}):
		if f.ID != e.id {
			return false
		}
	case c.publishing.seen || f.Topic != "" && f.Topic != c.groups.topic(e.group):
		return false
	}
	return f.First <= arrival && (f.Last == 0 || f.Last >= e.first)
}

// abandoned turns publishes that were never settled into causes, if their relay was stopped or lost the
// lane. One that was simply forgotten is a fault of the relay and explains nothing.
func (c *Checker) abandoned() {
	stopped := map[string]bool{}
	for _, f := range c.faults {
		if f.Kind.stops() && f.Relay != "" {
			stopped[f.Relay] = true
		}
	}
	for what, at := range c.publishing.open {
		l := c.leases[what.lease]
		lost := stopped[what.lease.relay] || l != nil && l.lost
		if at.acked && at.unsure || lost && (at.acked || at.inFlight) {
			c.publishing.causes = append(c.publishing.causes, cause{what.entry, at.next})
		}
	}
}

// unanswered turns publishes into causes that were on their way when answers got lost, that were handed over
// behind one of their line that ended in doubt, because the broker may have taken both at once, or whose topic is
// doubtful.
func (c *Checker) unanswered() {
	losing := slices.DeleteFunc(slices.Clone(c.faults), func(f Fault) bool {
		_, _, loses := f.answersLost()
		return !loses
	})
	for _, t := range c.publishing.reportedFailures {
		topic := c.groups.topic(c.entries.at(t.entry).group)
		doubtful := c.end != nil && slices.Contains(c.end.Doubtful, topic)
		lost := func(f Fault) bool { return f.lostAnswer(t, topic) }
		if t.behind || doubtful || slices.ContainsFunc(losing, lost) {
			c.publishing.causes = append(c.publishing.causes, t.cause)
		}
	}
}

// lostAnswer tells whether the fault may have kept the answer to this publish from its relay.
func (f *Fault) lostAnswer(t reportedFailure, topic string) bool {
	from, to, _ := f.answersLost()
	return t.started != 0 && t.ended != 0 && from <= t.ended && t.started <= to &&
		(f.Topic == "" || f.Topic == topic) && (f.Relay == "" || f.Relay == t.relay)
}
