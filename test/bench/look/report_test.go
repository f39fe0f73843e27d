package look

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/steady"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// good is a run in which nothing was missed.
func good(plan Plan) *Report {
	report := &Report{Plan: plan, WALBefore: 900, WALAfter: 1000}
	for _, c := range everything() {
		report.Commands = append(report.Commands, Found{command: c, Time: 50 * time.Millisecond, Pages: 50})
	}
	if plan.Rest > 0 {
		for _, path := range watched {
			report.Open = append(report.Open, Open{Path: path, Every: 5 * time.Second, Share: 0.002})
		}
	}
	for i := range 2 * plan.Pairs {
		report.Flows = append(report.Flows, Flow{Looked: i%2 == 0, Stretch: steady.Stretch{
			Offered: flowRate, P50: 5 * time.Millisecond, P99: 20 * time.Millisecond,
		}})
	}
	if plan.Pairs > 0 {
		report.screens = map[string][]time.Duration{}
		for _, s := range screens {
			report.screens[s.name] = slices.Repeat([]time.Duration{50 * time.Millisecond}, fewestOpened)
		}
	}
	return report
}

// TestEveryLimitHasAReason: whoever raises it has to say what the pages are for.
func TestEveryLimitHasAReason(t *testing.T) {
	t.Parallel()
	for _, c := range everything() {
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
		"list took 1.1s, at most 1s": {Full(), func(r *Report) { r.Commands[len(screens)].Time = 1100 * time.Millisecond }},
		"screen_overview took 110ms, at most 100ms": {Full(), func(r *Report) {
			r.Commands[0].Time = 110 * time.Millisecond
		}},
		"a console on /events costs the database 1.10 % of a core, and 1 % is the most": {Full(), func(r *Report) {
			r.Open[1].Share = 0.011
		}},
		"a console on /events costs nothing": {Full(), func(r *Report) { r.Open[1].Share = 0 }},
		"9 consoles were left open":          {Full(), func(r *Report) { r.Open = r.Open[1:] }},
		"looking makes the p50 1.40 times as long, and 1.30 is the most": {Full(), func(r *Report) {
			for i := range r.Flows {
				if r.Flows[i].Looked {
					r.Flows[i].P50 = 7 * time.Millisecond
				}
			}
		}},
		"looking makes the p99 2.00 times as long, and 1.60 is the most": {Full(), func(r *Report) {
			for i := range r.Flows {
				if r.Flows[i].Looked {
					r.Flows[i].P99 = 40 * time.Millisecond
				}
			}
			r.Flows[1].P99 = 32 * time.Millisecond // and these differ more than 1.5
		}},
		"900 events/s flowed in a stretch": {Full(), func(r *Report) { r.Flows[3].Offered = 900 }},
		"9 stretches, and 10 are to be":    {Full(), func(r *Report) { r.Flows = r.Flows[1:] }},
		"3 events were not delivered":      {Full(), func(r *Report) { r.Lost = 3 }},
		"screen_dead was opened 2 times": {Full(), func(r *Report) {
			r.screens["screen_dead"] = r.screens["screen_dead"][1:]
		}},
		"screen_dead took 101ms while events flowed": {Full(), func(r *Report) {
			r.screens["screen_dead"] = slices.Repeat([]time.Duration{101 * time.Millisecond}, fewestOpened)
		}},
		"list_aggregate took the database 110ms, at most 100ms": {Full(), func(r *Report) {
			at := slices.IndexFunc(r.Commands, func(f Found) bool { return f.name == "list_aggregate" })
			r.Commands[at].Database = 110 * time.Millisecond
		}},
		"list looked at 101 pages, at most 100: one page of the list": {Short(), func(r *Report) {
			r.Commands[len(screens)].Pages = 101
		}},
		"screen_overview looked at 0 pages": {Full(), func(r *Report) { r.Commands[0].Pages = 0 }},
		"too little was tested":             {Short(), func(r *Report) { r.Commands = r.Commands[1:] }},
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
