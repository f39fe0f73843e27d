package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
)

// verdict says in a sentence what came of it.
func verdict(r *torture.Report) string {
	v := r.Verdict
	faults, kinds := 0, len(v.Faults)
	for _, n := range v.Faults {
		faults += n
	}
	under := fmt.Sprintf("%d events were committed under %d faults of %d kinds", v.Count(check.Committed), faults, kinds)
	switch {
	case r.OK():
		return fmt.Sprintf("GOOD: %s. None was lost, invented, changed, delivered out of order or charged for a fault that "+
			"was not its own; "+
			"%d were delivered more than once, each for a reason that is on record.", under, v.Count(check.Duplicates))
	case len(v.Problems()) == 0 && len(r.Problems) == 0:
		return fmt.Sprintf("TOO LITTLE WAS TESTED: %s, and nothing was broken; but %s.", under,
			strings.Join(v.TooLittle, "; "))
	default:
		return fmt.Sprintf("BROKEN: %s, and promises were broken; they are listed.", under)
	}
}

// printResult prints the verdict and writes the report.
func printResult(r *torture.Report, plan torture.Plan, s settings, w *where, began time.Time, folder string,
	stdout io.Writer,
) error {
	if s.report != "" {
		faults, err := torture.Faults(folder)
		if err != nil {
			return err
		}
		text := markdown(r, plan, s, w, began, faults)
		if err := os.WriteFile(s.report, []byte(text), 0o644); err != nil { //nolint:gosec // a report is for everybody
			return fmt.Errorf("write the report: %w", err)
		}
	}
	r.PrintProblems(stdout)
	if !r.OK() || s.histories != "" {
		_, _ = fmt.Fprintf(stdout, "the histories are in %s\n", folder)
	}
	_, _ = fmt.Fprintln(stdout, verdict(r)) // the exit code tells
	_, err := fmt.Fprintln(stdout, torture.Line(plan.Name, r))
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// markdown is the report.
func markdown(r *torture.Report, plan torture.Plan, s settings, w *where, began time.Time,
	faults []check.Fault,
) string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("# What an outbox went through\n")
	line("%s\n", verdict(r))
	line("| | |\n|---|---|")
	line("| when | %s, for %s |", began.UTC().Format("2006-01-02 15:04:05 UTC"), r.Duration.Round(time.Second))
	line("| database | %s on %s, PostgreSQL %s, as %s |", w.database, w.host, w.version, w.role)
	line("| broker | %s |", w.broker)
	line("| relays, producers | %d, %d |", plan.Relays, plan.Producers)
	line("| lease | %s |", plan.Lease)
	line("| seed | %d |\n", s.seed)
	if !r.OK() {
		line("## What is wrong\n")
		for _, p := range r.Verdict.Problems() {
			line("- %s", p)
		}
		for _, p := range slices.Concat(r.Problems, r.Verdict.TooLittle) {
			line("- %s", strings.ReplaceAll(p, "\n", " "))
		}
		line("")
	}
	line("## What was done to it\n")
	line("| fault | times | what it is |\n|---|---|---|")
	for _, kind := range slices.Sorted(maps.Keys(r.Verdict.Faults)) {
		line("| %s | %d | %s |", kind, r.Verdict.Faults[kind], kinds[kind])
	}
	line("\n## What was counted\n")
	line("| figure | count | what it means |\n|---|---|---|")
	for _, f := range r.Figures {
		line("| %s | %d | %s |", f.Name, f.Value, figures[f.Name])
	}
	line("\nWhen the last fault was healed, what was left took %s.\n", r.Drain.Round(100*time.Millisecond))
	line("## When\n")
	line("Seconds since the beginning. Lost acknowledgements are not listed.\n")
	line("| from | to | fault | of |\n|---|---|---|---|")
	slices.SortStableFunc(faults, func(a, b check.Fault) int { return cmp.Compare(a.From, b.From) })
	for _, f := range faults {
		since := func(at int64) float64 { return time.UnixMicro(at).Sub(began).Seconds() }
		line("| %.1f | %.1f | %s | %s |", since(f.From), since(f.To), f.Kind,
			strings.TrimSpace(f.Relay+" "+f.Topic+" "+f.Detail))
	}
	return text.String()
}
