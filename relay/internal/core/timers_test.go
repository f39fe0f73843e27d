package core

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Timers come out by their times, and those of one time in the order in which they were set.
func TestTimersComeOutInOrder(t *testing.T) {
	t.Parallel()
	type set struct {
		at  time.Duration
		nth int
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		var timers timers[set]
		var want []set
		for nth := range 200 {
			if random.IntN(3) > 0 || len(want) == 0 {
				one := set{at: time.Duration(random.IntN(20)), nth: nth}
				timers.push(one.at, one)
				want = append(want, one)
				slices.SortFunc(want, func(a, b set) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.nth, b.nth)) })
				continue
			}
			if next := timers.next(); next != want[0].at {
				t.Fatalf("seed %d: the next is at %d, want %d", seed, next, want[0].at)
			}
			if got := timers.pop(); got != want[0] {
				t.Fatalf("seed %d: got %+v, want %+v", seed, got, want[0])
			}
			want = want[1:]
		}
		for len(want) > 0 {
			if got := timers.pop(); got != want[0] {
				t.Fatalf("seed %d: got %+v, want %+v", seed, got, want[0])
			}
			want = want[1:]
		}
		if timers.next() != never {
			t.Errorf("seed %d: something is left", seed)
		}
	}
}
