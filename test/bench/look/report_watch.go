package look

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// mostShare is how much of a core a console may cost the database that is left open.
const mostShare = 0.01

// fewestOpened is how often a screen must have been opened while events flowed.
const fewestOpened = 3

// Ratio is what looking makes of a latency of the flow, the median of the pairs. Spread is by what the stretches differ
// in which nobody looked.
func (r *Report) Ratio(of func(Flow) time.Duration) (ratio, spread float64) {
	var ratios []float64
	var least, most time.Duration
	for i := 0; i+1 < len(r.Flows); i += 2 {
		with, without := r.Flows[i], r.Flows[i+1]
		if without.Looked {
			with, without = without, with
		}
		ratios = append(ratios, of(with).Seconds()/of(without).Seconds())
		if least == 0 || of(without) < least {
			least = of(without)
		}
		most = max(most, of(without))
	}
	if len(ratios) == 0 {
		return 0, 0
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2], most.Seconds() / least.Seconds()
}

func p50(f Flow) time.Duration { return f.P50 }
func p99(f Flow) time.Duration { return f.P99 }

// watchProblems are the musts of looking for long, and while events flow.
func (r *Report) watchProblems() (problems []string) {
	must := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	if r.Plan.Rest > 0 {
		must(len(r.Open) == len(watched), "%d consoles were left open, and %d are to be", len(r.Open), len(watched))
	}
	for _, o := range r.Open {
		must(o.Share > 0, "a console on /%s costs nothing: it was not measured", o.Path)
		must(o.Share < mostShare, "a console on /%s costs the database %.2f %% of a core, and %.0f %% is the most", o.Path,
			100*o.Share, 100*mostShare)
	}
	if r.Plan.Pairs == 0 {
		return problems
	}
	must(len(r.Flows) == 2*r.Plan.Pairs, "%d stretches, and %d are to be", len(r.Flows), 2*r.Plan.Pairs)
	must(r.Lost == 0, "%d events were not delivered", r.Lost)
	for _, f := range r.Flows {
		must(f.Offered >= 0.95*flowRate, "%.0f events/s flowed in a stretch, and %d should", f.Offered, flowRate)
	}
	for _, goal := range []struct {
		name string
		of   func(Flow) time.Duration
		most float64
	}{{"p50", p50, mostP50}, {"p99", p99, mostP99}} {
		ratio, spread := r.Ratio(goal.of)
		must(ratio <= max(goal.most, spread), "looking makes the %s %.2f times as long, and %.2f is the most", goal.name,
			ratio, max(goal.most, spread))
	}
	for _, s := range screens {
		took := r.screens[s.name]
		must(len(took) >= fewestOpened, "%s was opened %d times while events flowed", s.name, len(took))
		must(middle(took) <= s.limit(), "%s took %s while events flowed, at most %s", s.name,
			middle(took).Round(time.Millisecond), s.limit())
	}
	return problems
}

// printWatched writes what looking for long costs, and adds to the line.
func (r *Report) printWatched(to io.Writer, line *figures.Line) error {
	if len(r.Open) > 0 {
		table := bench.NewTable("screen", "read again", "of a core")
		most := 0.0
		for _, o := range r.Open {
			table.Add("/"+o.Path, o.Every.String(), fmt.Sprintf("%.2f %%", 100*o.Share))
			most = max(most, o.Share)
		}
		if err := table.Print(to, "What a console costs the database that is left open"); err != nil {
			return err
		}
		line.Addf("open_console_percent", "%.2f", 100*most)
	}
	if len(r.Flows) == 0 {
		return nil
	}
	table := bench.NewTable("people look", "events/s", "p50", "p99")
	for _, f := range r.Flows {
		table.Add(map[bool]string{true: "yes", false: "-"}[f.Looked], fmt.Sprintf("%.0f", f.Offered), milliseconds(f.P50),
			milliseconds(f.P99))
	}
	if err := table.Print(to, "From commit to acknowledgement"); err != nil {
		return err
	}
	table = bench.NewTable("screen", "opened", "time")
	var slowest time.Duration
	for _, s := range screens {
		took := r.screens[s.name]
		table.Add(s.name, fmt.Sprint(len(took)), milliseconds(middle(took)))
		if s.most == 0 {
			slowest = max(slowest, middle(took))
		}
	}
	if err := table.Print(to, "Screens while events flow"); err != nil {
		return err
	}
	for _, of := range []struct {
		name string
		of   func(Flow) time.Duration
	}{{"p50", p50}, {"p99", p99}} {
		ratio, spread := r.Ratio(of.of)
		line.Addf("flow_"+of.name+"_ratio", "%.2f", ratio)
		line.Addf("flow_"+of.name+"_spread", "%.2f", spread)
	}
	line.Addf("flow_slowest_screen_ms", "%.0f", slowest.Seconds()*1e3)
	line.Addf("flow_lost", "%d", r.Lost)
	return nil
}
