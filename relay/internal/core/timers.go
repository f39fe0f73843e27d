package core

import "time"

// timers hands out items when their time has come, those with equal times in the order of their setting.
type timers[T any] struct {
	heap []timer[T]
	set  uint64
}

type timer[T any] struct {
	at   time.Duration
	nth  uint64
	item T
}

func (t *timers[T]) before(i, j int) bool {
	a, b := &t.heap[i], &t.heap[j]
	return a.at < b.at || a.at == b.at && a.nth < b.nth
}

func (t *timers[T]) push(at time.Duration, item T) {
	t.set++
	t.heap = append(t.heap, timer[T]{at: at, nth: t.set, item: item})
	for i := len(t.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !t.before(i, parent) {
			break
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

// next is when the first item is due.
func (t *timers[T]) next() time.Duration {
	if len(t.heap) == 0 {
		return never
	}
	return t.heap[0].at
}

// pop takes the first item out.
func (t *timers[T]) pop() T {
	first := t.heap[0].item
	last := len(t.heap) - 1
	t.heap[0] = t.heap[last]
	t.heap[last] = timer[T]{}
	t.heap = t.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if t.before(child, least) {
				least = child
			}
		}
		if least == i {
			break
		}
		t.heap[i], t.heap[least] = t.heap[least], t.heap[i]
		i = least
	}
	return first
}
