package crash

import (
	"fmt"
	"io"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/figures"
)

// Report is what all trials came to.
type Report struct {
	Outcomes []*Outcome
	plan     Plan
	seconds  float64
}

// String is a line about one trial.
func (o *Outcome) String() string {
	word := "hit"
	switch {
	case !o.Hit:
		word = "NOT REACHED"
	case !o.OK():
		word = "BROKEN"
	}
	return fmt.Sprintf("%-22s %s, %d events, %d duplicates, %.1f s",
		o.Point, word, o.Verdict.Count(check.Committed), o.Verdict.Count(check.Duplicates), o.Seconds)
}

// Sum is one of the checker's figures, of all trials together.
func (r *Report) Sum(of check.Counter) (sum int) {
	for _, o := range r.Outcomes {
		sum += o.Verdict.Count(of)
	}
	return sum
}

// reached counts the points, and those of them that were reached.
func (r *Report) reached() (points, hit int) {
	for _, o := range r.Outcomes {
		if _, is := describe(o.Point); !is {
			continue
		}
		points++
		if o.Hit {
			hit++
		}
	}
	return points, hit
}

// problems lists what was broken and what was not tested, with the trial's name.
func (r *Report) problems() (list []string) {
	for _, o := range r.Outcomes {
		var own []string
		for _, p := range o.Verdict.Problems() {
			own = append(own, "BROKEN: "+p.String())
		}
		for _, s := range o.Verdict.TooLittle {
			own = append(own, "MISSED: "+s)
		}
		for _, s := range o.Problems {
			own = append(own, "BROKEN: "+s)
		}
		if len(own) > 0 {
			own = append(own, "the histories are in "+o.Folder)
		}
		for _, s := range own {
			list = append(list, o.Point+": "+s)
		}
	}
	if events := r.Sum(check.Committed); events < r.plan.Least {
		list = append(list, fmt.Sprintf("MISSED: too little was tested: %d events, at least %d are needed", events,
			r.plan.Least))
	}
	return list
}

// OK tells whether every point was reached and nothing was broken.
func (r *Report) OK() bool { return len(r.problems()) == 0 }

// Print writes the problems and then the line of figures.
func (r *Report) Print(to io.Writer) error {
	for _, problem := range r.problems() {
		_, _ = fmt.Fprintln(to, problem) // the last line tells
	}
	kills, stops, poisoned := 0, 0, 0
	for _, o := range r.Outcomes {
		kills, stops, poisoned = kills+o.Kills, stops+o.Stops, poisoned+o.Poisoned
	}
	points, hit := r.reached()
	f := figures.New("proof-crash")
	f.Addf("points", "%d", points)
	f.Addf("hit", "%d", hit)
	f.Addf("events", "%d", r.Sum(check.Committed))
	f.Addf("kills", "%d", kills)
	f.Addf("stops", "%d", stops)
	f.Addf("poison_deaths", "%d", poisoned)
	f.Addf("delivered", "%d", r.Sum(check.DeliveredDistinct))
	f.Addf("dead", "%d", r.Sum(check.DeadLettered))
	f.Addf("discarded", "%d", r.Sum(check.DiscardedByName))
	f.Addf("duplicates", "%d", r.Sum(check.Duplicates))
	for _, zero := range check.Zeros() {
		f.Addf(zero.Name, "%d", r.Sum(zero.Of))
	}
	f.Addf("seconds", "%.0f", r.seconds)
	f.Addf("ok", "%t", r.OK())
	if _, err := fmt.Fprintln(to, f); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
