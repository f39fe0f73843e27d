package pinned_test

import (
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/pinned"
)

// good is a run in which all musts are met.
func good() *pinned.Report {
	phase := func(name string, p99 time.Duration) *pinned.Phase {
		return &pinned.Phase{Name: name, Thirds: [3]float64{3000, 3000, 3000}, Offered: 3000, P50: p99 / 3, P99: p99}
	}
	return &pinned.Report{
		Plan: pinned.Short(), Unpinned: phase("unpinned", 20*time.Millisecond), Snapshot: phase("snapshot", 30*time.Millisecond),
		SnapshotControl: phase("snapshot_control", 2*time.Second), Writer: phase("writer", 250*time.Millisecond),
		WriterControl: phase("writer_control", 2*time.Second), Own: pinned.Own{Order: []int{1, 2}},
	}
}

func TestEveryMustCanBeMissed(t *testing.T) {
	t.Parallel()
	if problems := good().Problems(); len(problems) > 0 {
		t.Fatalf("a good run has %q", problems)
	}
	for name, spoil := range map[string]func(*pinned.Report){
		"last third":             func(r *pinned.Report) { r.Snapshot.Thirds[2] = 2800 },
		"p99 is 61ms":            func(r *pinned.Report) { r.Snapshot.P99 = 61 * time.Millisecond },
		"p99 is 301ms":           func(r *pinned.Report) { r.Writer.P99 = 301 * time.Millisecond },
		"under a snapshot the":   func(r *pinned.Report) { r.SnapshotControl.P99 = 60 * time.Millisecond },
		"behind an open writer":  func(r *pinned.Report) { r.WriterControl.P99 = 300 * time.Millisecond },
		"were not delivered":     func(r *pinned.Report) { r.Writer.Undelivered = 1 },
		"before an earlier":      func(r *pinned.Report) { r.Unpinned.Inverted = 1 },
		"too little was tested":  func(r *pinned.Report) { r.Snapshot.Offered = 2600 },
		"order of arrival [2 1]": func(r *pinned.Report) { r.Own.Order = []int{2, 1} },
		"order of arrival [2]":   func(r *pinned.Report) { r.Own.Order = []int{2} },
		"1 early":                func(r *pinned.Report) { r.Own.Early = 1 },
	} {
		report := good()
		spoil(report)
		if problems := report.Problems(); len(problems) != 1 || !strings.Contains(problems[0], name) {
			t.Errorf("%s: %q", name, problems)
		}
	}
}
