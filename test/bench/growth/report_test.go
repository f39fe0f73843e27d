package growth

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// good is a run in which nothing was missed.
func good() *Report {
	found := func(rows int) Found {
		return Found{
			Rows: rows, Opened: time.Second, Through: 2 * time.Second, Pages: 2, Bytes: 1 << 20, Alarms: 101, Needs: 100,
			Waits: []time.Duration{5 * time.Millisecond, 10 * time.Millisecond},
		}
	}
	report := &Report{Plan: Full(), Empty: []Found{found(0), found(0)}}
	for _, s := range states {
		report.Grown = append(report.Grown, Pair{Name: s.name, LineBytes: s.lineBytes, Small: found(100), Large: found(1000)})
	}
	return report
}

// TestEveryMustCanBeMissed: and each is named.
func TestEveryMustCanBeMissed(t *testing.T) {
	t.Parallel()
	if problems := good().Problems(); len(problems) > 0 {
		t.Fatalf("%q", problems)
	}
	for problem, spoil := range map[string]func(*Report){
		"dead of 1000 rows: 1 statements failed": func(r *Report) {
			r.Grown[2].Large.Failed = 1
		},
		"dead of 100 rows: 1 statements failed": func(r *Report) {
			r.Grown[2].Small.Failed = 1
		},
		"names of 1000 rows: 20000 alarms, at most 110": func(r *Report) {
			r.Grown[4].Large.Alarms = 20000
		},
		"20000 type names are kept for the lanes, at most 200": func(r *Report) {
			r.Grown[4].Large.Needs = 20000
		},
		"parked of 1000 rows: 100000000 bytes of memory": func(r *Report) {
			r.Grown[3].Large.Bytes = 1e8
		},
		"backlog of 1000 rows: lanes opened after 31s": func(r *Report) {
			r.Grown[0].Large.Opened += lease
		},
		"backlog: a row costs 4 pages with ten times as many rows, at most 2.4": func(r *Report) {
			r.Grown[0].Large.Pages = 4
		},
		"backlog: a row costs 0 pages": func(r *Report) {
			r.Grown[0].Large.Pages = 0
		},
		"other events waited for 31ms (p99), at most 30ms": func(r *Report) {
			r.Grown[1].Large.Waits[1] = 31e6
		},
		"too little was tested": func(r *Report) {
			r.Grown = r.Grown[1:]
		},
		"too little was tested ": func(r *Report) {
			r.Empty = r.Empty[1:]
		},
	} {
		report := good()
		spoil(report)
		if got := strings.Join(report.Problems(), "\n"); !strings.Contains(got, strings.TrimSpace(problem)) {
			t.Errorf("want %q, got %q", problem, got)
		}
		var text strings.Builder
		if err := report.Print(&text); err != nil || !strings.HasSuffix(text.String(), " ok=false\n") {
			t.Errorf("%v: %s", err, text.String())
		}
	}
}

// TestTimesDecideNothingInTheShortForm: on a busy machine they say nothing.
func TestTimesDecideNothingInTheShortForm(t *testing.T) {
	t.Parallel()
	report := good()
	report.Plan = Short()
	report.Grown[0].Large.Opened, report.Grown[0].Large.Waits = time.Hour, []time.Duration{time.Hour}
	if problems := report.Problems(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
}
