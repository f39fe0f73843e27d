package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/test/kit/gotest"
)

// report is the verdict.
type report struct {
	servers  []string
	rows     [][3]string // fault, what, where
	shown    int
	later    int
	skipped  []string
	figures  map[string]int
	mutants  int
	problems []string
	failures []string // output of what failed
}

func check(found *gotest.Results, servers []string) *report {
	r := &report{servers: servers, figures: map[string]int{}}
	if len(servers) < minServers {
		r.failf("%d servers, want %d", len(servers), minServers)
	}
	r.checkOutcomes(found)
	for _, f := range faults {
		r.checkFault(found, f)
	}
	r.checkCorpus(found)
	r.checkRaces(found)
	r.mutants = len(found.Figures["mutants_found"])
	if r.mutants < minMutants {
		r.failf("%d mutants were found, want %d", r.mutants, minMutants)
	}
	return r
}

func (r *report) failf(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *report) ok() bool { return len(r.problems) == 0 }

// checkOutcomes: nothing may fail, nothing may be left out without its fault saying so, and a package that
// did not end did not pass.
func (r *report) checkOutcomes(found *gotest.Results) {
	mayBeSkipped := func(name string) bool {
		return slices.ContainsFunc(faults, func(f fault) bool {
			return f.maySkip && slices.ContainsFunc(f.tests, func(test string) bool { return strings.HasPrefix(name, test+"/") })
		})
	}
	for _, name := range slices.Sorted(maps.Keys(found.Outcomes)) {
		switch outcome := found.Outcomes[name]; {
		case outcome == "fail":
			r.failf("%s failed", name)
			r.failures = append(r.failures, found.Outputs[name])
		case outcome == "skip" && !mayBeSkipped(name):
			r.failf("%s was skipped", name)
			r.failures = append(r.failures, found.Outputs[name])
		}
	}
	for _, name := range append([]string{"emit"}, slices.Sorted(maps.Keys(otherPackages))...) {
		if found.Outcomes[name] == "" {
			r.failf("the tests of %s did not end", name)
			r.failures = append(r.failures, found.Outputs[name])
		}
	}
}

func (r *report) checkFault(found *gotest.Results, f fault) {
	if f.later != "" {
		r.later++
		r.rows = append(r.rows, [3]string{f.id, f.what, "later: " + f.later})
		return
	}
	wanted := slices.Clone(f.anyway)
	for _, test := range f.tests {
		for _, server := range r.servers {
			wanted = append(wanted, test+"/"+server)
		}
	}
	passed, skipped := 0, ""
	for _, name := range wanted {
		switch found.Outcomes[name] {
		case "pass":
			passed++
		case "skip":
			skipped = lastLine(found.Outputs[name])
		case "":
			r.failf("%s: %s did not run", f.id, name)
		}
	}
	where := strings.Join(slices.Concat(f.tests, f.anyway), " ")
	if f.more != "" {
		where += "; later: " + f.more
	}
	switch {
	case passed == len(wanted):
		r.shown++
	case skipped != "" && f.maySkip:
		r.skipped = append(r.skipped, f.id)
		where = "not run here: " + skipped
	default:
		where = "NOT SHOWN: " + where
	}
	r.rows = append(r.rows, [3]string{f.id, f.what, where})
}

// lastLine is what a skipped test gave as its reason.
func lastLine(output string) string {
	reason := "no reason given"
	for text := range strings.Lines(output) {
		if text = strings.TrimSpace(text); text != "" && !strings.HasPrefix(text, "---") {
			reason = text
		}
	}
	return reason
}

// figure takes a number that a test must have reported on every server, the same on each.
func (r *report) figure(found *gotest.Results, test, name string) int {
	values := map[int]bool{}
	for _, server := range r.servers {
		n, reported := found.Figures[name]["emit."+test+"/"+server]
		if !reported {
			r.failf("%s/%s did not report %s", test, server, name)
			return -1
		}
		values[n] = true
		r.figures[name] = n
	}
	if len(values) > 1 {
		r.failf("the servers do not agree on %s: %v", name, slices.Sorted(maps.Keys(values)))
	}
	return r.figures[name]
}

func (r *report) checkCorpus(found *gotest.Results) {
	inputs := r.figure(found, "TestCorpus", "inputs")
	stored := r.figure(found, "TestCorpus", "stored")
	rejected := r.figure(found, "TestCorpus", "refused")
	if inputs < minInputs {
		r.failf("%d inputs, want %d", inputs, minInputs)
	}
	if stored+rejected != inputs {
		r.failf("%d stored and %d refused are not %d inputs", stored, rejected, inputs)
	}
	for _, group := range groups {
		if n := r.figure(found, "TestCorpus", "group_"+group); n < minGroup {
			r.failf("group %s has %d inputs, want %d", group, n, minGroup)
		}
	}
	if panics := r.figure(found, "TestCorpus", "panics"); panics != 0 {
		r.failf("%d panics", panics)
	}
	if commits := r.figure(found, "TestCorpus", "commits_after_refusal"); commits != rejected {
		r.failf("%d of %d transactions could commit after their refusal", commits, rejected)
	}
	asked := r.figure(found, "TestCorpusInSQL", "sql_inputs")
	if agreed, differs := r.figure(found, "TestCorpusInSQL", "sql_agreed"),
		r.figure(found, "TestCorpusInSQL", "sql_differs"); asked < minInputs || agreed+differs != asked {
		r.failf("outbox_emit was asked about %d inputs, agreed on %d and has a reason to differ on %d", asked,
			agreed, differs)
	}
}

func (r *report) checkRaces(found *gotest.Results) {
	pairs := r.figure(found, "TestDedupeRace", "pairs")
	if pairs < minPairs {
		r.failf("%d pairs raced, want %d", pairs, minPairs)
	}
	if rows := r.figure(found, "TestDedupeRace", "pair_rows"); rows != pairs {
		r.failf("%d of %d pairs left exactly one event", rows, pairs)
	}
	if errs := r.figure(found, "TestDedupeRace", "pair_errors"); errs != 0 {
		r.failf("%d transactions of the pairs failed", errs)
	}
	if rollbacks := r.figure(found, "TestDedupeRace", "pair_rollbacks"); rollbacks < pairs/2 {
		r.failf("%d rollbacks among %d pairs", rollbacks, pairs)
	}
	if waits := r.figure(found, "TestDedupeRace", "pair_waits"); waits < pairs/2 {
		r.failf("in %d of %d pairs the second was seen waiting: they hardly raced", waits, pairs)
	}
	if rounds, deadlocks := r.figure(found, "TestFaultA7NoDeadlockWithinOneCall", "rounds"),
		r.figure(found, "TestFaultA7NoDeadlockWithinOneCall", "deadlocks"); rounds < minRounds || deadlocks != 0 {
		r.failf("%d deadlocks in %d rounds", deadlocks, rounds)
	}
}

func (r *report) print(to io.Writer) {
	for _, row := range r.rows {
		fmt.Fprintf(to, "%-4s %-48s %s\n", row[0], row[1], row[2])
	}
	for _, failure := range r.failures {
		fmt.Fprintln(to, strings.TrimRight(failure, "\n"))
	}
	for _, problem := range r.problems {
		fmt.Fprintln(to, "MISSED:", problem)
	}
	fmt.Fprintf(to, "proof-emit servers=%d faults=%d shown=%d later=%d skipped=%d", len(r.servers), len(faults), r.shown,
		r.later, len(r.skipped))
	for _, name := range []string{
		"inputs", "stored", "refused", "panics", "commits_after_refusal", "sql_inputs", "sql_agreed", "sql_differs",
		"pairs", "pair_rows", "pair_errors", "pair_rollbacks", "pair_waits", "rounds", "deadlocks",
	} {
		if n, reported := r.figures[name]; reported {
			fmt.Fprintf(to, " %s=%d", name, n)
		}
	}
	fmt.Fprintf(to, " mutants=%d ok=%v\n", r.mutants, r.ok())
}
