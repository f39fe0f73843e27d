package core

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

// pushFront puts an item before all others.
func (q *queue[T]) pushFront(item T) {
	if q.head == 0 {
		var none T
		q.items = append([]T{none}, q.items...)
		q.head = 1
	}
	q.head--
	q.items[q.head] = item
}
