package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestLatencyColumn: every bound reads as what it is.
func TestLatencyColumn(t *testing.T) {
	t.Parallel()
	bounds := operator.LatencyBounds()
	column := latency("P50", 0.5)
	var got []string
	for bucket := range len(bounds) + 1 {
		took := make([]int64, len(bounds)+1)
		took[bucket] = 1
		text := column.Of(operator.Traffic{Counts: operator.Counts{Latencies: took}})
		got = append(got, text)
		bound, err := time.ParseDuration(strings.TrimLeft(text, "≤>"))
		if want := bounds[min(bucket, len(bounds)-1)]; err != nil || bound != want {
			t.Errorf("%s reads as %q (%v)", want, text, err)
		}
	}
	for _, want := range []string{"≤10s", "≤30s", "≤1m", "≤5m", ">30m"} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %s among %v", want, got)
		}
	}
}
