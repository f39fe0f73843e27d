package look

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// good is a run in which nothing was missed.
func good(plan Plan) *Report {
	report := &Report{Plan: plan, WALBefore: 900, WALAfter: 1000}
	for _, c := range commands {
		report.Commands = append(report.Commands, Found{command: c, Time: 50 * time.Millisecond, Pages: 50})
	}
	return report
}

// TestEveryLimitHasAReason: whoever raises it has to say what the pages are for.
func TestEveryLimitHasAReason(t *testing.T) {
	t.Parallel()
	for _, c := range commands {
		if c.pages <= 0 || c.why == "" {
			t.Errorf("%s may look at %d pages, because: %q", c.name, c.pages, c.why)
		}
	}
}

// TestEveryMustCanBeMissed: and each is named. In the short form times decide nothing, in the full one pages do not.
func TestEveryMustCanBeMissed(t *testing.T) {
	t.Parallel()
	for _, plan := range []Plan{Full(), Short()} {
		if problems := good(plan).Problems(); len(problems) > 0 {
			t.Fatalf("%q", problems)
		}
	}
	for problem, c := range map[string]struct {
		plan  Plan
		spoil func(*Report)
	}{
		"list took 1.1s, at most 1s": {Full(), func(r *Report) { r.Commands[0].Time = 1100 * time.Millisecond }},
		"list_aggregate took the database 110ms, at most 100ms": {Full(), func(r *Report) {
			at := slices.IndexFunc(r.Commands, func(f Found) bool { return f.name == "list_aggregate" })
			r.Commands[at].Database = 110 * time.Millisecond
		}},
		"list looked at 101 pages, at most 100: one page of the list": {Short(), func(r *Report) {
			r.Commands[0].Pages = 101
		}},
		"list looked at 0 pages": {Full(), func(r *Report) { r.Commands[0].Pages = 0 }},
		"too little was tested":  {Short(), func(r *Report) { r.Commands = r.Commands[1:] }},
	} {
		report := good(c.plan)
		c.spoil(report)
		if got := strings.Join(report.Problems(), "; "); !strings.Contains(got, problem) {
			t.Errorf("got %q, want %q", got, problem)
		}
		var out strings.Builder
		if err := report.Print(&out); err != nil || !strings.Contains(out.String(), "MISSED: "+problem) ||
			!strings.HasSuffix(out.String(), "ok=false\n") {
			t.Errorf("%v: %s", err, out.String())
		}
	}
}
