package core

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// delayOf is min(base * 2^(failures-1), limit), without a limit to the numbers.
func delayOf(base time.Duration, failures int, limit time.Duration) time.Duration {
	delay := big.NewInt(int64(base))
	if base > 0 && failures > 1 {
		delay.Lsh(delay, uint(min(failures-1, 64))) // beyond that it is above every limit
	}
	if delay.Cmp(big.NewInt(int64(limit))) > 0 {
		return limit
	}
	return time.Duration(delay.Int64())
}

// checkBackoff holds grow and jitter to RL-7 and S-5.
func checkBackoff(t *testing.T, grow func(time.Duration, int, time.Duration) time.Duration, base time.Duration,
	failures int, limit time.Duration, chance uint64,
) {
	t.Helper()
	want := delayOf(base, failures, limit)
	got := grow(base, failures, limit)
	if got != want {
		t.Errorf("grow(%d, %d, %d) = %d, want %d", base, failures, limit, got, want)
	}
	c := &Core{config: Config{Random: func() uint64 { return chance }}}
	if jittered := c.jitter(got); jittered < got/2 || jittered > got {
		t.Errorf("jitter(%d) = %d with %d", got, jittered, chance)
	}
}

// RL-7, S-5: the delay doubles up to its limit, for any number of failures, and never overflows.
func TestTheDelayDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	edges := []time.Duration{
		0, 1, 2, 3, time.Millisecond, time.Second, 300 * time.Second, math.MaxInt64 / 2, math.MaxInt64/2 + 1,
		math.MaxInt64 - 1, math.MaxInt64,
	}
	for _, base := range edges {
		for _, limit := range edges {
			for _, failures := range []int{0, 1, 2, 3, 10, 33, 34, 35, 62, 63, 64, 65, 1000, 1_000_000} {
				for _, chance := range []uint64{0, 1, math.MaxUint64, math.MaxUint64 / 2} {
					checkBackoff(t, grow, base, failures, limit, chance)
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		base, limit := time.Duration(random.Int64()>>random.IntN(63)), time.Duration(random.Int64()>>random.IntN(63))
		checkBackoff(t, grow, base, random.IntN(1_000_000), limit, random.Uint64())
	}
}

// The check must see the overflow of the plain formula.
func TestTheCheckSeesAnOverflow(t *testing.T) {
	t.Parallel()
	plain := func(base time.Duration, failures int, limit time.Duration) time.Duration {
		return min(base<<max(0, failures-1), limit)
	}
	if plain(time.Second, 10, time.Hour) != delayOf(time.Second, 10, time.Hour) {
		t.Error("the plain formula is right for small numbers")
	}
	if plain(time.Second, 35, time.Hour) == delayOf(time.Second, 35, time.Hour) {
		t.Error("the plain formula overflows at 35 attempts, and nobody sees it")
	}
}

// RL-7: the whole of [delay/2, delay] is used, evenly.
func TestJitterIsEven(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	c := &Core{config: Config{Random: random.Uint64}}
	const delay, draws = 1000 * time.Millisecond, 20_000
	var quarters [4]int
	for range draws {
		quarters[min(3, (c.jitter(delay)-delay/2)/(delay/8))]++
	}
	for quarter, n := range quarters {
		if n < draws/4-draws/40 || n > draws/4+draws/40 {
			t.Errorf("%d of %d draws are in quarter %d", n, draws, quarter)
		}
	}
}

func FuzzBackoff(f *testing.F) {
	f.Add(int64(time.Second), uint32(35), int64(300*time.Second), uint64(7))
	f.Add(int64(1), uint32(1_000_000), int64(math.MaxInt64), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, base int64, failures uint32, limit int64, chance uint64) {
		checkBackoff(t, grow, time.Duration(base&math.MaxInt64), int(failures%1_000_001), time.Duration(limit&math.MaxInt64),
			chance)
	})
}
