package core

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A queue does what a slice does, whatever is done to it.
func TestAQueueIsASlice(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var q queue[int]
		var want []int
		for step := range 1000 {
			switch what := random.IntN(8); {
			case what < 4:
				q.push(step)
				want = append(want, step)
			case what < 5:
				third := func(n int) bool { return n%3 == 0 }
				q.bringForward(third)
				if at := slices.IndexFunc(want, third); at >= 0 {
					first := want[at]
					want = slices.Insert(slices.Delete(want, at, at+1), 0, first)
				}
			case len(want) > 0:
				if got := q.pop(); got != want[0] {
					t.Fatalf("seed %d, step %d: popped %d, want %d", seed, step, got, want[0])
				}
				want = want[1:]
			}
			if q.len() != len(want) {
				t.Fatalf("seed %d, step %d: %d items, want %d", seed, step, q.len(), len(want))
			}
		}
	}
}

// What was popped is not kept alive, and a queue that stays short stays small.
func TestAQueueForgetsWhatWasPopped(t *testing.T) {
	t.Parallel()
	var q queue[*int]
	for i := range 100_000 {
		q.push(&i)
		q.push(&i)
		q.pop()
		if i > 0 {
			q.pop()
		}
	}
	if cap(q.items) > 1000 {
		t.Errorf("room for %d items, with %d in it", cap(q.items), q.len())
	}
	for i, item := range q.items[:q.head] {
		if item != nil {
			t.Errorf("item %d is still there", i)
		}
	}
}
