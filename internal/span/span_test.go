package span_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
)

// TestOf: in one unit, and never more than it was.
func TestOf(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 ms", 0: "0 ms",
		999*time.Millisecond + 999*time.Microsecond: "999 ms",
		time.Second: "1 s", 3400 * time.Millisecond: "3.4 s",
		9*time.Second + 999*time.Millisecond: "9.9 s", 10 * time.Second: "10 s", 119 * time.Second: "119 s",
		2 * time.Minute: "2 min", 119 * time.Minute: "119 min", 2 * time.Hour: "2 h", 47 * time.Hour: "47 h",
		48 * time.Hour: "2 days", 71 * time.Hour: "2 days", 72 * time.Hour: "3 days",
	} {
		if got := span.Of(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
