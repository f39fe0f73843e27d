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
	// Problems are what the checker cannot see, each in a sentence.
	Problems []string
	// Vanished is how many events producers took for committed, and a forgetful database has lost.
	Vanished int
	// Unwitnessed is how many settles count as applied, although no row changed: those that the database lost.
	Unwitnessed int
	// Name is the plan's.
	Name string
	// Figures are what was counted, besides faults.
	Figures []Figure
	// Duration is how long all of it took, and Drain how long what was left took when everything was healed.
	Duration, Drain time.Duration
}

// Figure is one count.
type Figure struct {
	Name  string
	Value int
}

// OK tells whether nothing was broken and enough was tested.
func (r *Report) OK() bool { return r.Verdict.Pass() && len(r.Problems) == 0 }

// Print writes the problems and then the line of figures.
func (r *Report) Print(to io.Writer) error {
	r.PrintProblems(to)
	if _, err := fmt.Fprintln(to, Line(r.Name, r)); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// PrintProblems writes what was broken or missed, a line each.
func (r *Report) PrintProblems(to io.Writer) {
	for _, p := range r.Verdict.Problems() {
		_, _ = fmt.Fprintln(to, "BROKEN:", p) // the last line tells
	}
	for _, s := range r.Verdict.TooLittle {
		_, _ = fmt.Fprintln(to, "MISSED:", s)
	}
	for _, s := range r.Problems {
		_, _ = fmt.Fprintln(to, "BROKEN:", s)
	}
}

// counters are the checker's figures in the last line. All from lost on must be zero.
func counters() []check.Figure {
	return append([]check.Figure{
		{Name: "delivered", Of: check.DeliveredDistinct},
		{Name: "dead", Of: check.DeadLettered},
		{Name: "discarded", Of: check.DiscardedByName},
		{Name: "ordered_aggregates", Of: check.OrderedAggregates},
		{Name: "duplicates", Of: check.Duplicates},
		{Name: "redelivered", Of: check.Redelivered},
		{Name: "unserved", Of: check.RequestsUnserved},
		{Name: "copies_order", Of: check.CopiesOutOfOrder},
		{Name: "after_cancel", Of: check.SentAfterCancel},
	}, check.Zeros()...)
}

// report counts what the checker does not.
func (r *run) report(c *collector, v *check.Verdict, audited *audited) (*Report, error) {
	report := &Report{Name: r.plan.Name, Verdict: v, Drain: r.drainTime, Unwitnessed: c.unwitnessed}
	for _, problem := range r.fleet.problems {
		report.Problems = append(report.Problems, problem.Error())
	}
	report.Problems = append(report.Problems, r.operators.unexpected...)
	if c.unwitnessed > 0 && !r.plan.Forgetful {
		report.Problems = append(report.Problems,
			fmt.Sprintf("%d settles count as applied, and no row changed", c.unwitnessed))
	}
	if most := r.drainLimit(); r.drainTime > most {
		report.Problems = append(report.Problems,
			fmt.Sprintf("%d events were left when all was healed, and took %s; %s would have been fine",
				r.backlog, r.drainTime.Round(time.Millisecond), most.Round(time.Millisecond)))
	}
	logs, err := readLogs(r.plan.Folder)
	if err != nil {
		return nil, err
	}
	report.Problems = append(report.Problems, logs.problems...)
	failures, died := map[check.Class]int{}, map[check.State]int{}
	for _, step := range c.steps {
		switch {
		case step.Step == nil:
		case step.Step.Do == check.PublishFailed:
			failures[step.Step.Class]++
		case step.Step.Do == check.Settle && step.Step.Result == check.Applied:
			died[step.Step.To]++
		}
	}
	if r.plan.Thorough {
		report.demand("retryable failures", failures[check.OfEvent], r.plan.Events*3/100)
		report.demand("deaths that block", died[check.DeadBlocking], 1)
		report.demand("deaths that are passed", died[check.Dead], 1)
		report.demand("terminal failures", failures[check.Terminal], r.plan.Events/500)
		for _, verb := range []check.Verb{check.Redrive, check.Skip, check.Discard, check.Redeliver} {
			report.demand(string(verb)+"s", r.operators.did[verb], verbsAtLeast[verb])
		}
		report.demand("transactions held open", int(r.producers.held.Load()), oddAtLeast)
		report.demand("rollbacks", int(r.producers.rollbacks.Load()), oddAtLeast)
		report.demand("events undone by a savepoint", int(r.producers.undone.Load()), oddAtLeast)
	}
	if r.plan.prepares() && r.plan.Mutant == "" {
		report.demand("prepared transactions that outlived the server", int(r.producers.survived.Load()), 1)
	}
	report.count(r, c, failures, died, logs)
	if audited != nil {
		report.Problems = append(report.Problems, audited.problems()...)
		audited.count(report)
	}
	report.Duration = time.Since(r.began)
	return report, nil
}

// drainLimit is how long what is left may take when everything is healed: half a minute, and as long as the relays took
// for as much of it under faults, or the producers if they were slower. So a machine on which relays are slow is its
// own measure. Where the producers took longer than planned, half a minute is longer by as much.
func (r *run) drainLimit() time.Duration {
	produced := float64(r.plan.Events) / r.produceTime.Seconds()
	handled := float64(r.producers.committed.Load()-int64(r.backlog)) / r.injectionTime.Seconds()
	slow := max(1, r.produceTime.Seconds()/r.plan.Production.Seconds())
	return time.Duration((30*slow + float64(r.backlog)/max(1, min(produced, handled))) * float64(time.Second))
}

// count makes the figures, in the order of the last line.
func (r *Report) count(of *run, c *collector, failures map[check.Class]int, died map[check.State]int, logs logs) {
	v := r.Verdict
	r.add("events", v.Count(check.Committed))
	r.add("aggregates", of.plan.Aggregates)
	r.add("relays", of.plan.Relays)
	r.add("lives", of.fleet.started)
	r.add("refused", failures[check.OfEvent])
	r.add("refused_terminal", failures[check.Terminal])
	r.add("died_blocking", died[check.DeadBlocking])
	r.add("died_passed", died[check.Dead])
	for _, verb := range []check.Verb{check.Redrive, check.Skip, check.Discard, check.Redeliver} {
		r.add(string(verb), of.operators.did[verb])
	}
	r.add("held_open", int(of.producers.held.Load()))
	r.add("rollbacks", int(of.producers.rollbacks.Load()))
	r.add("undone", int(of.producers.undone.Load()))
	r.add("interrupted", int(of.producers.interrupted.Load()))
	if of.plan.prepares() {
		r.add("prepared_outlived", int(of.producers.survived.Load()))
	}
	for _, c := range counters() {
		r.add(c.Name, v.Count(c.Of))
	}
	r.add("unwitnessed", c.unwitnessed)
	r.add("panics", logs.panics)
	r.add("races", logs.races)
	r.add("leaks", logs.leaks)
}

func (r *Report) add(name string, value int) { r.Figures = append(r.Figures, Figure{name, value}) }

// Line is the figures of one or several runs, added up.
func Line(name string, reports ...*Report) string {
	line := figures.New(name)
	sums, faults := map[string]int{}, map[check.FaultKind]int{}
	var seconds, drain time.Duration
	ok := true
	for _, r := range reports {
		for _, f := range r.Figures {
			sums[f.Name] += f.Value
		}
		for kind, n := range r.Verdict.Faults {
			faults[kind] += n
		}
		seconds, drain, ok = seconds+r.Duration, max(drain, r.Drain), ok && r.OK()
	}
	for i, f := range reports[0].Figures {
		line.Addf(f.Name, "%d", sums[f.Name])
		if i > 0 {
			continue
		}
		line.Addf("seconds", "%.0f", seconds.Seconds())
		line.Addf("faults", "%d", total(faults))
		line.Addf("kinds", "%d", len(faults))
		line.Addf("kills", "%d", faults[check.Kill])
		for _, kind := range slices.Sorted(maps.Keys(faults)) {
			line.Addf(string(kind), "%d", faults[kind])
		}
	}
	line.Addf("drain_seconds", "%.1f", drain.Seconds())
	line.Addf("ok", "%t", ok)
	return line.String()
}

func (r *Report) demand(what string, have, want int) {
	if have < want {
		r.Problems = append(r.Problems, fmt.Sprintf("too little was tested: %s is %d, at least %d is needed", what,
			have, want))
	}
}

func total(faults map[check.FaultKind]int) (sum int) {
	for _, n := range faults {
		sum += n
	}
	return sum
}
