package relay

import (
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

// wallMoved is the time with its wall clock moved and its monotonic one left alone, as after a suspension or
// when somebody sets the clock. No function of package time does that.
func wallMoved(t testing.TB, at time.Time, by time.Duration) time.Time {
	t.Helper()
	moved := at
	// The first field has a flag, 33 bits of seconds and 30 of nanoseconds.
	*(*uint64)(unsafe.Pointer(&moved)) += uint64(by/time.Second) << 30
	if moved.Sub(at) != 0 || moved.Round(0).Sub(at.Round(0)) != by {
		t.Fatalf("package time has changed: moved by %s and %s", moved.Sub(at), moved.Round(0).Sub(at.Round(0)))
	}
	return moved
}

// C7: while a machine is suspended the monotonic clock stands still, and the leases run out all the same.
func TestTheClockCountsASuspension(t *testing.T) {
	t.Parallel()
	c := newClock()
	begin := time.Now()
	first := c.at(begin)
	awake := wallMoved(t, begin, time.Hour)
	if passed := c.at(awake) - first; passed != time.Hour {
		t.Errorf("%s passed in an hour's suspension", passed)
	}
	if passed := c.at(awake.Add(time.Second)) - first; passed != time.Hour+time.Second {
		t.Errorf("a second later it is %s", passed)
	}
}

// C7, C8: a wall clock that is set back takes nothing away, and the time after it counts.
func TestTheClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	c := newClock()
	begin := time.Now()
	before := c.at(begin)
	back := wallMoved(t, begin.Add(time.Second), -10*time.Hour)
	if passed := c.at(back) - before; passed != time.Second {
		t.Errorf("%s passed in the second in which the clock was set back", passed)
	}
	if passed := c.at(back.Add(5*time.Second)) - before; passed != 6*time.Second {
		t.Errorf("five seconds later it is %s", passed)
	}
	random := rand.New(rand.NewPCG(1, 2))
	at, last := back, c.at(back)
	for range 10_000 {
		at = at.Add(time.Duration(random.IntN(1000)))
		at = wallMoved(t, at, time.Duration(random.IntN(20)-10)*time.Second)
		now := c.at(at)
		if now < last {
			t.Fatalf("it went from %s to %s", last, now)
		}
		last = now
	}
}
