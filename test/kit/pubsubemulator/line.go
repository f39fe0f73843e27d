package pubsubemulator

import (
	"container/heap"
	"slices"
	"time"
)

// line is the messages of an ordering key on a subscription, oldest first, or a single message without one.
//
// When a message is redelivered, because of a nack or a deadline that has passed, all later ones of its line are
// redelivered behind it, acknowledged ones included: Google's page on ordering says so. An acknowledgement is final
// when everything ahead of it is acknowledged too.
type line struct {
	key    string
	items  []*item
	next   int     // the first that may be delivered; what is ahead of it is out or done
	out    int     // how many are out
	holder *holder // who has them

	// in is the heap that the line stands in, at the message with the number head. An entry of a heap whose stamp
	// is not the line's is an old one.
	in    *lineHeap
	head  int64
	stamp int
}

// first returns the message that is delivered next, or nil.
func (l *line) first() *item {
	for l.next < len(l.items) && l.items[l.next].state >= acked {
		l.next++
	}
	if l.next == len(l.items) {
		return nil
	}
	return l.items[l.next]
}

// schedule puts a line where those look for it who may have its next message.
func (s *subscription) schedule(l *line, now time.Time) {
	it := l.first()
	var h *lineHeap
	at := int64(0)
	switch {
	case it == nil:
	case it.due > now.UnixNano():
		h, at = &s.later, it.due
	case l.out == 0:
		h, at = &s.free, it.record.Seq
	case !l.holder.closed:
		// While somebody has messages of the line, no other holder gets the later ones: it could be faster.
		h, at = &l.holder.ready, it.record.Seq
	}
	if h == l.in && (h == nil || at == l.head) {
		return
	}
	l.stamp++
	l.in, l.head = h, at
	if h != nil {
		heap.Push(h, lineEntry{line: l, at: at, stamp: l.stamp})
	}
}

// deliver gives the line's next message out.
func (s *subscription) deliver(l *line, to *holder, deadline, now time.Time) *item {
	it := l.first()
	it.state, it.deadline = out, deadline
	it.sent++
	l.next++
	l.out++
	l.holder = to
	to.outstanding++
	to.bytes += len(it.record.Data)
	heap.Push(&s.leases, lease{item: it, deadline: deadline})
	s.schedule(l, now)
	return it
}

// takeBack ends the lease of a message.
func (l *line) takeBack(it *item) {
	it.state = waiting
	l.out--
	l.holder.outstanding--
	l.holder.bytes -= len(it.record.Data)
}

// finish ends a message, as acked or gone, and lets go of what is final.
func (s *subscription) finish(it *item, as itemState, now time.Time) {
	l := it.line
	if it.state == out {
		l.takeBack(it)
	}
	it.state, it.ackID = as, ""
	s.unacknowledged--
	for len(l.items) > 0 && l.items[0].state >= acked {
		delete(s.items, l.items[0].record.ID)
		l.items[0] = nil
		l.items = l.items[1:]
		l.next = max(0, l.next-1)
	}
	if len(l.items) == 0 && l.key != "" && s.lines[l.key] == l {
		delete(s.lines, l.key)
	}
	s.schedule(l, now)
}

// rewind makes a message and all later ones of its line the next to be delivered.
func (s *subscription) rewind(it *item, now time.Time) {
	l := it.line
	at := slices.Index(l.items, it)
	for _, later := range l.items[at:] {
		switch later.state {
		case out:
			l.takeBack(later)
		case acked:
			later.state = waiting
			s.unacknowledged++
		case waiting, gone:
		}
		if later != it {
			later.ackID = "" // an acknowledgement that is under way must not count
		}
	}
	l.next = min(l.next, at)
	s.schedule(l, now)
}

// fail counts a failure of a message that is out, and delivers it again when its time has come.
func (s *subscription) fail(it *item, now time.Time, longest time.Duration) {
	it.failures++
	it.due = now.Add(s.backoff(it.failures, longest)).UnixNano()
	s.rewind(it, now)
}

// lineEntry is a line in a heap.
type lineEntry struct {
	line  *line
	at    int64
	stamp int
}

// lineHeap has the line first whose number is the smallest.
type lineHeap []lineEntry

func (h *lineHeap) Len() int           { return len(*h) }
func (h *lineHeap) Less(i, j int) bool { return (*h)[i].at < (*h)[j].at }
func (h *lineHeap) Swap(i, j int)      { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push is for package heap.
func (h *lineHeap) Push(x any) { *h = append(*h, x.(lineEntry)) }

// Pop is for package heap.
func (h *lineHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = lineEntry{}
	*h = (*h)[:last]
	return e
}

// peek returns the first line, or nil; old entries are dropped on the way.
func (h *lineHeap) peek() *line {
	for len(*h) > 0 {
		if e := (*h)[0]; e.stamp == e.line.stamp {
			return e.line
		}
		heap.Pop(h)
	}
	return nil
}

// lease is a message that is out.
type lease struct {
	item     *item
	deadline time.Time
}

// leaseHeap has the lease first that ends first. Entries of leases that were prolonged or ended are dropped when
// their time comes.
type leaseHeap []lease

func (h *leaseHeap) Len() int           { return len(*h) }
func (h *leaseHeap) Less(i, j int) bool { return (*h)[i].deadline.Before((*h)[j].deadline) }
func (h *leaseHeap) Swap(i, j int)      { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push is for package heap.
func (h *leaseHeap) Push(x any) { *h = append(*h, x.(lease)) }

// Pop is for package heap.
func (h *leaseHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = lease{}
	*h = (*h)[:last]
	return e
}
