package torture

import (
	"testing"
	"time"
)

func TestWholeSeconds(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]time.Duration{
		0:                             0,
		120 * time.Microsecond:        0,
		-120 * time.Microsecond:       0,
		3 * time.Millisecond:          0,
		3001 * time.Microsecond:       3001 * time.Microsecond,
		-40 * time.Millisecond:        -40 * time.Millisecond,
		time.Hour + time.Millisecond:  time.Hour,
		time.Hour - time.Millisecond:  time.Hour,
		-time.Hour + time.Millisecond: -time.Hour,
		-time.Hour - time.Millisecond: -time.Hour,
		time.Hour + time.Second/2:     time.Hour + time.Second/2,
	} {
		if got := wholeSeconds(ahead.Microseconds()); got != want.Microseconds() {
			t.Errorf("%s ahead: %d microseconds, want %s", ahead, got, want)
		}
	}
}
