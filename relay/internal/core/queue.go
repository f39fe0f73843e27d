package core

import "slices"

// queue is first in, first out.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(item T) {
	if q.head > 64 && q.head*2 > len(q.items) { // the front is used up: move the rest there
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

func (q *queue[T]) pop() T {
	var none T
	item := q.items[q.head]
	q.items[q.head] = none
	q.head++
	return item
}

// bringForward puts the first item for which this holds before all others.
func (q *queue[T]) bringForward(holds func(T) bool) {
	items := q.items[q.head:]
	if at := slices.IndexFunc(items, holds); at > 0 {
		item := items[at]
		copy(items[1:], items[:at])
		items[0] = item
	}
}
