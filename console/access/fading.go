package access

import (
	"container/list"
	"time"
)

// fading remembers a bounded number of things until their time is over. Each has the same time to go, so whatever was
// put in last ends last, and the order in which things came is the order in which they go.
type fading[K comparable, V any] struct {
	most  int
	by    map[K]*list.Element
	order *list.List
}

// fact is one thing that is remembered.
type fact[K comparable, V any] struct {
	key   K
	value V
	until time.Time
}

func newFading[K comparable, V any](most int) *fading[K, V] {
	return &fading[K, V]{most: most, by: map[K]*list.Element{}, order: list.New()}
}

// get is what is remembered of a key, and until when.
func (f *fading[K, V]) get(key K, now time.Time) (value V, until time.Time, ok bool) {
	element, known := f.by[key]
	if !known {
		return value, until, false
	}
	found, _ := element.Value.(*fact[K, V])
	if !now.Before(found.until) {
		f.forget(element)
		return value, until, false
	}
	return found.value, found.until, true
}

// put remembers a value. What is over goes, and the oldest where there is no room.
func (f *fading[K, V]) put(key K, value V, until, now time.Time) {
	if element, known := f.by[key]; known {
		found, _ := element.Value.(*fact[K, V])
		if !found.until.Equal(until) {
			f.order.MoveToBack(element)
		}
		found.value, found.until = value, until
		return
	}
	for first := f.order.Front(); first != nil; first = f.order.Front() {
		if oldest, _ := first.Value.(*fact[K, V]); now.Before(oldest.until) && len(f.by) < f.most {
			break
		}
		f.forget(first)
	}
	f.by[key] = f.order.PushBack(&fact[K, V]{key: key, value: value, until: until})
}

// remove forgets a key.
func (f *fading[K, V]) remove(key K) {
	if element, known := f.by[key]; known {
		f.forget(element)
	}
}

func (f *fading[K, V]) forget(element *list.Element) {
	if gone, ok := f.order.Remove(element).(*fact[K, V]); ok {
		delete(f.by, gone.key)
	}
}
