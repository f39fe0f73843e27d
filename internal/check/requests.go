package check

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// checkRequests compares the requests with the copies that were sent and arrived.
func (c *Checker) checkRequests() {
	numbers := slices.Sorted(maps.Keys(c.copies))
	for _, number := range numbers {
		r := c.copies[number]
		e := c.entries.at(r.entry)
		if r.row == nil {
			c.countf(DuplicatesUnexplained, e.id, "was delivered for request %d, which does not exist", number)
			continue
		}
		switch {
		case r.delivered > 0 || r.row.End == RequestCanceled || r.row.End == RequestFailed:
		case r.row.End == RequestDelivered:
			c.countf(RequestsUnserved, e.id, "request %d counts as delivered, and never was", number)
		case c.drained():
			c.countf(RequestsUnserved, e.id, "request %d is still open", number)
		}
		want := cmp.Or(r.row.Topic, c.groups.topic(e.group))
		if slices.ContainsFunc(r.topics, func(topic string) bool { return topic != want }) {
			c.countf(Corrupted, e.id, "the copy for request %d went to another topic", number)
		}
		if r.row.Canceled != 0 && r.sentLast > r.row.Canceled {
			c.countf(SentAfterCancel, e.id, "the copy for request %d was sent at %d, and it was canceled at %d", number,
				r.sentLast, r.row.Canceled)
		}
	}
	c.checkCopies(numbers)
}

// checkCopies compares the first deliveries of the copies with the versions of their events, per action, aggregate and
// topic. Nobody waits for a copy that was given up, and it may arrive late all the same; nor for one that was written
// down, when a failover took that back.
func (c *Checker) checkCopies(numbers []int64) {
	var listed []*copied
	for _, number := range numbers {
		r := c.copies[number]
		if r.row != nil && r.row.End == RequestDelivered && !r.row.TakenBack && r.first != 0 &&
			c.entries.at(r.entry).version != 0 {
			listed = append(listed, r)
		}
	}
	slices.SortFunc(listed, func(a, b *copied) int {
		return cmp.Or(compareLines(c, a, b), cmp.Compare(c.entries.at(a.entry).version, c.entries.at(b.entry).version))
	})
	latest, highest := uint64(0), uint64(0) // of lower versions, and of this one as well
	for i, r := range listed {
		e := c.entries.at(r.entry)
		switch {
		case i == 0 || compareLines(c, listed[i-1], r) != 0:
			latest, highest = 0, 0
		case c.entries.at(listed[i-1].entry).version != e.version:
			latest = highest
		}
		if r.first < latest {
			c.countf(CopiesOutOfOrder, e.id, "the copy of version %d was delivered at %d, that of a lower one only at %d",
				e.version, r.first, latest)
		}
		highest = max(highest, r.first)
	}
}

func compareLines(c *Checker, a, b *copied) int {
	return cmp.Or(bytes.Compare(a.row.Action[:], b.row.Action[:]), cmp.Compare(a.row.Topic, b.row.Topic),
		cmp.Compare(c.entries.at(a.entry).group, c.entries.at(b.entry).group))
}
