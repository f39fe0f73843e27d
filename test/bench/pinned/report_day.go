package pinned

import (
	"fmt"
	"io"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// problems are the musts of a day that were missed. Pages decide, which are counted, and times do not.
func (d *Day) problems() []string {
	var problems []string
	for _, s := range d.Steps {
		if s.ratio() > maxAged {
			problems = append(problems, fmt.Sprintf(
				"after a day of beats a %s looks at %.1f pages, %.1f without: at most %.1f times as many and %d more are allowed",
				s.Name, s.Aged, s.Fresh, maxAged, s.Lookups))
		}
	}
	if d.Beats > 0 && d.Control.ratio() <= maxAged {
		problems = append(problems, fmt.Sprintf("to look at every beat takes %.1f pages after a day, and %.1f without: "+
			"nothing was shown", d.Control.Aged, d.Control.Fresh))
	}
	return problems
}

// table writes what was found.
func (d *Day) table(to io.Writer) error {
	if d.Beats == 0 {
		return nil
	}
	table := bench.NewTable("what a relay does", "pages without", "pages after", "of them the way to beats",
		"ratio of the others", "time against without", "min..max", "without against itself")
	for _, s := range append(d.Steps, d.Control) {
		time, spread, same := "", "", ""
		if s.Time.Rounds > 0 {
			time, spread = fmt.Sprintf("%.2f", s.Time.Median), fmt.Sprintf("%.2f..%.2f", s.Time.Min, s.Time.Max)
			same = fmt.Sprintf("%.2f..%.2f", s.Same.Q1, s.Same.Q3)
		}
		table.Add(s.Name, fmt.Sprintf("%.1f", s.Fresh), fmt.Sprintf("%.1f", s.Aged), fmt.Sprint(s.Lookups),
			fmt.Sprintf("%.2f", s.ratio()), time, spread, same)
	}
	return table.Print(to, fmt.Sprintf("After %d beats of each of %d relays under a held snapshot (a day has %d)", d.Beats,
		dayRelays, BeatsOfADay))
}

// figures adds those of the last line.
func (d *Day) figures(f *figures.Line) {
	f.Addf("day_beats", "%d", dayRelays*d.Beats)
	if d.Beats == 0 {
		return
	}
	for _, s := range d.Steps {
		name := strings.ReplaceAll(s.Name, "-", "")
		f.Addf("day_"+name+"_pages", "%.2f", s.ratio())
		f.Addf("day_"+name+"_time", "%.2f", s.Time.Median)
	}
	f.Addf("day_control_pages", "%.2f", d.Control.ratio())
}

// printGoals tells how the project's goals stand, of those that this run has measured.
func (r *Report) printGoals(to io.Writer) error {
	if r.Day.Beats == 0 {
		return nil
	}
	table, after := bench.NewGoals(), "after a day of beats under a held snapshot"
	if r.Day.Beats < BeatsOfADay {
		after = fmt.Sprintf("after %.2f of a day of beats under a held snapshot", float64(r.Day.Beats)/BeatsOfADay)
	}
	for _, s := range r.Day.Steps {
		table.Add(fmt.Sprintf("%s %s, against fresh: pages", s.Name, after), bench.AtMost(maxAged), s.ratio(), 0)
		table.Add(fmt.Sprintf("%s %s, against fresh: time", s.Name, after), bench.AtMost(maxAged), s.Time.Median,
			s.Same.Resolution())
	}
	return table.Print(to)
}
