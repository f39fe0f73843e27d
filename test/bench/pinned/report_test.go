package pinned_test

import (
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/pinned"
)

// good is a run in which all musts are met.
func good() *pinned.Report {
	phase := func(name string, p99 time.Duration) *pinned.Phase {
		return &pinned.Phase{
			Name: name, Thirds: [3]float64{3000, 3000, 3000}, Offered: 3000, P50: p99 / 3, P99: p99, Counted: 100,
			ReadPages: 400,
		}
	}
	report := &pinned.Report{
		Plan: pinned.Full(), Unpinned: phase("unpinned", 20*time.Millisecond),
		Snapshot:        phase("snapshot", 30*time.Millisecond),
		SnapshotControl: phase("snapshot_control", 2*time.Second), Writer: phase("writer", 250*time.Millisecond),
		WriterControl: phase("writer_control", 2*time.Second), Own: pinned.Own{Order: []int{1, 2}},
	}
	report.SnapshotControl.ReadPages, report.WriterControl.ReadPages = 1_000_000, 1_000_000
	report.Day = &pinned.Day{
		Beats:   pinned.BeatsOfADay,
		Steps:   []pinned.Step{{Name: "read", Fresh: 40, Aged: 60}, {Name: "beat", Fresh: 10, Aged: 18, Lookups: 3}},
		Control: pinned.Step{Fresh: 2, Aged: 1000},
	}
	return report
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
		"snapshot: a read looks": func(r *pinned.Report) { r.Snapshot.ReadPages = 20_001 },
		"writer: a read looks":   func(r *pinned.Report) { r.Writer.ReadPages = 20_001 },
		"under a snapshot the r": func(r *pinned.Report) { r.SnapshotControl.ReadPages = 20_000 },
		"behind an open writer ": func(r *pinned.Report) { r.WriterControl.ReadPages = 20_000 },
		"a read looks at 61.0":   func(r *pinned.Report) { r.Day.Steps[0].Aged = 61 },
		"a beat looks at 19.0":   func(r *pinned.Report) { r.Day.Steps[1].Aged = 19 },
		"to look at every beat":  func(r *pinned.Report) { r.Day.Control.Aged = 3 },
		"2 reads were counted":   func(r *pinned.Report) { r.Writer.Counted = 2 },
	} {
		report := good()
		spoil(report)
		if problems := report.Problems(); len(problems) != 1 || !strings.Contains(problems[0], name) {
			t.Errorf("%s: %q", name, problems)
		}
	}
}

// In the short form pages decide, and times do not.
func TestTimesDecideNothingInTheShortForm(t *testing.T) {
	t.Parallel()
	short := func() *pinned.Report {
		r := good()
		r.Plan = pinned.Short()
		return r
	}
	r := short()
	for _, p := range []*pinned.Phase{r.Unpinned, r.Snapshot, r.Writer} {
		p.Thirds[2], p.P99, p.Offered = 1, time.Hour, 1
	}
	r.SnapshotControl.P99, r.WriterControl.P99 = 1, 1
	if problems := r.Problems(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
	r = short()
	r.Snapshot.ReadPages, r.WriterControl.ReadPages = 4_500, 4_400 // 4,472 is the most
	problems := strings.Join(r.Problems(), "\n")
	for _, want := range []string{
		"snapshot: a read looks at 4500 pages", "behind an open writer the run without the watermark passed",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("no %q in %s", want, problems)
		}
	}
}

// The load is less than half of what the machine can do, and never more than the plan's.
func TestTheLoadIsWhatTheMachineCanDo(t *testing.T) {
	t.Parallel()
	for capacity, want := range map[float64]int{100_000: 3000, 7500: 3000, 5000: 2000, 1000: 400, 1: 10} {
		plan := pinned.Full().On(capacity)
		if events := float64(plan.Rate) * plan.Length.Seconds(); plan.Rate != want || events < 299 ||
			float64(plan.Rate)*plan.Control.Seconds() < 299 {
			t.Errorf("%.0f events/s: the load is %d, %.0f events in %s", capacity, plan.Rate, events, plan.Length)
		}
	}
}
