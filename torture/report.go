package torture

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/figures"
)

// Report is what a run found.
type Report struct {
	Verdict *check.Verdict
	// Problems are what the judge cannot see, each in a sentence.
	Problems []string
	figures  *figures.Line
}

// OK tells whether nothing was broken and enough was tested.
func (r *Report) OK() bool { return r.Verdict.Pass() && len(r.Problems) == 0 }

// Print writes the problems and then the line of figures.
func (r *Report) Print(to io.Writer) error {
	for _, p := range r.Verdict.Problems() {
		_, _ = fmt.Fprintln(to, "BROKEN:", p) // the last line tells
	}
	for _, s := range r.Verdict.TooLittle {
		_, _ = fmt.Fprintln(to, "MISSED:", s)
	}
	for _, s := range r.Problems {
		_, _ = fmt.Fprintln(to, "BROKEN:", s)
	}
	if _, err := fmt.Fprintln(to, r.figures); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// counters are the judge's figures in the last line. All from lost on must be zero.
var counters = []struct {
	name string
	of   check.Counter
}{
	{"delivered", check.DeliveredDistinct},
	{"dead", check.DeadLettered},
	{"discarded", check.DiscardedByName},
	{"ordered_aggregates", check.OrderedAggregates},
	{"duplicates", check.Duplicates},
	{"lost", check.Lost},
	{"phantom", check.Phantom},
	{"corrupted", check.Corrupted},
	{"order", check.OrderViolations},
	{"stuck", check.Stuck},
	{"illegal", check.IllegalTransitions},
	{"unexplained", check.DuplicatesUnexplained},
	{"wrong_charges", check.ChargedWrongly},
	{"overlaps", check.OwnersOverlapping},
	{"stale_applied", check.StaleSettlesApplied},
	{"dead_without_letter", check.DeadWithoutLetter},
	{"letter_without_dead", check.LetterWithoutDead},
	{"malformed", check.Malformed},
	{"unresolved", check.Unresolved},
}

// report counts what the judge does not, and makes the line of figures.
func (r *run) report(c *collector, v *check.Verdict) *Report {
	report := &Report{Verdict: v, figures: figures.New(r.plan.Name)}
	for _, problem := range r.fleet.problems {
		report.Problems = append(report.Problems, problem.Error())
	}
	report.Problems = append(report.Problems, r.operators.refused...)
	if c.unwitnessed > 0 {
		report.Problems = append(report.Problems, fmt.Sprintf("%d settles count as applied, and no row changed", c.unwitnessed))
	}
	refused := map[check.Class]int{}
	for _, step := range c.steps {
		if step.Step != nil && step.Step.Do == check.Refuse {
			refused[step.Step.Class]++
		}
	}
	if r.plan.Thorough {
		report.demand("retryable failures", refused[check.OfEvent], r.plan.Events*3/100)
		report.demand("terminal failures", refused[check.Terminal], r.plan.Events/500)
		report.demand("redrives", r.operators.did[check.Redrive], 5)
		report.demand("skips", r.operators.did[check.Skip], 1)
		report.demand("discards", r.operators.did[check.Discard], 1)
		report.demand("transactions held open", int(r.producers.held.Load()), 10)
		report.demand("rollbacks", int(r.producers.rollbacks.Load()), 10)
		report.demand("events undone by a savepoint", int(r.producers.undone.Load()), 10)
	}
	f := report.figures
	f.Addf("events", "%d", v.Count(check.Committed))
	f.Addf("aggregates", "%d", r.plan.Aggregates)
	f.Addf("relays", "%d", r.plan.Relays)
	f.Addf("lives", "%d", r.fleet.lives)
	f.Addf("faults", "%d", total(v.Faults))
	for _, kind := range slices.Sorted(maps.Keys(v.Faults)) {
		f.Addf(string(kind), "%d", v.Faults[kind])
	}
	f.Addf("refused", "%d", refused[check.OfEvent])
	f.Addf("refused_terminal", "%d", refused[check.Terminal])
	for _, verb := range []check.Verb{check.Redrive, check.Skip, check.Discard} {
		f.Addf(string(verb), "%d", r.operators.did[verb])
	}
	f.Addf("held_open", "%d", r.producers.held.Load())
	f.Addf("rollbacks", "%d", r.producers.rollbacks.Load())
	f.Addf("undone", "%d", r.producers.undone.Load())
	f.Addf("interrupted", "%d", r.producers.interrupted.Load())
	for _, c := range counters {
		f.Addf(c.name, "%d", v.Count(c.of))
	}
	f.Addf("unwitnessed", "%d", c.unwitnessed)
	f.Addf("seconds", "%.0f", time.Since(r.began).Seconds())
	f.Addf("ok", "%t", report.OK())
	return report
}

func (r *Report) demand(what string, have, want int) {
	if have < want {
		r.Problems = append(r.Problems, fmt.Sprintf("too little was tested: %s is %d, at least %d is needed", what, have, want))
	}
}

func total(faults map[check.FaultKind]int) (sum int) {
	for _, n := range faults {
		sum += n
	}
	return sum
}
