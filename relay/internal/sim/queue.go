package sim

import "time"

// moment is something that happens at a simulated instant. Those of one instant happen in the order in
// which they were planned.
type moment struct {
	at time.Duration
	n  uint64
	do func() bool // false: it came to nothing, and is no step
}

func (m *moment) before(o *moment) bool { return m.at < o.at || m.at == o.at && m.n < o.n }

// queue is a binary heap of moments.
type queue struct {
	heap    []moment
	planned uint64
}

func (q *queue) plan(at time.Duration, do func() bool) {
	q.planned++
	q.heap = append(q.heap, moment{at, q.planned, do})
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if q.heap[parent].before(&q.heap[i]) {
			return
		}
		q.heap[parent], q.heap[i] = q.heap[i], q.heap[parent]
		i = parent
	}
}

// next takes the earliest moment out; false: there is none.
func (q *queue) next() (moment, bool) {
	if len(q.heap) == 0 {
		return moment{}, false
	}
	first, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = moment{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first, true
		}
		if right := child + 1; right < last && q.heap[right].before(&q.heap[child]) {
			child = right
		}
		if q.heap[i].before(&q.heap[child]) {
			return first, true
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
}
