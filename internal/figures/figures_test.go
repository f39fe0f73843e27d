package figures_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/figures"
)

func TestLine(t *testing.T) {
	t.Parallel()
	line := figures.New("bench-x")
	line.Addf("latency", "%.2f", 1.074)
	line.Addf("cpu", "%s", "not seen")
	if want := "bench-x latency=1.07 cpu=not_seen"; line.String() != want {
		t.Errorf("%q, want %q", line, want)
	}
}
