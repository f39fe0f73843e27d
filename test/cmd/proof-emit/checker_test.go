package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/gotest"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

var servers = []string{"postgres18", "postgres15"}

// perfect is a run in which everything went well.
func perfect() *gotest.Results {
	found := gotest.New()
	pass := func(name string) { found.Outcomes[name] = "pass" }
	pass("emit")
	for name := range otherPackages {
		pass(name)
	}
	for _, f := range faults {
		for _, test := range f.anyway {
			pass(test)
		}
		for _, test := range f.tests {
			for _, server := range servers {
				pass(test + "/" + server)
			}
		}
	}
	figures := map[string]map[string]int{
		"TestCorpus":      {"inputs": 210, "stored": 100, "refused": 110, "panics": 0, "commits_after_refusal": 110},
		"TestCorpusInSQL": {"sql_inputs": 205, "sql_agreed": 203, "sql_differs": 2},
		"TestDedupeRace": {
			"pairs": 200, "pair_rows": 200, "pair_errors": 0, "pair_rollbacks": 132, "pair_waits": 100,
		},
		"TestFaultA7NoDeadlockWithinOneCall": {"rounds": 200, "deadlocks": 0},
	}
	for _, group := range groups {
		figures["TestCorpus"]["group_"+group] = 30
	}
	for test, values := range figures {
		for name, n := range values {
			set(found, name, n, test)
		}
	}
	for i := range minMutants {
		found.Add(gotest.Line{
			Action: "attr", Package: module + "emit", Test: fmt.Sprintf("TestMutants/%d", i), Key: "mutants_found", Value: "1",
		})
	}
	return found
}

func set(r *gotest.Results, name string, n int, test string) {
	for _, server := range servers {
		r.Add(gotest.Line{
			Action: "attr", Package: module + "emit", Test: test + "/" + server, Key: name, Value: fmt.Sprint(n),
		})
	}
}

func lastLineOf(t *testing.T, r *report) string {
	t.Helper()
	var printed strings.Builder
	r.print(&printed)
	lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
	return lines[len(lines)-1]
}

func TestPerfectRunPasses(t *testing.T) {
	t.Parallel()
	r := check(perfect(), servers)
	if !r.ok() {
		t.Fatalf("want a pass, got %q", r.problems)
	}
	want := "proof-emit servers=2 faults=24 shown=22 later=2 skipped=0 inputs=210 stored=100 refused=110 panics=0 " +
		"commits_after_refusal=110" +
		" sql_inputs=205 sql_agreed=203 sql_differs=2 pairs=200 pair_rows=200 pair_errors=0 pair_rollbacks=132 " +
		"pair_waits=100 rounds=200 deadlocks=0 mutants=10 ok=true"
	if got := lastLineOf(t, r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Whatever was missed, or not tried often enough, must fail the proof.
func TestProofFails(t *testing.T) {
	t.Parallel()
	figure := func(name string, n int, test string) func(*gotest.Results) {
		return func(r *gotest.Results) { set(r, name, n, test) }
	}
	for name, spoil := range map[string]func(*gotest.Results){
		"test failed":          func(r *gotest.Results) { r.Outcomes["emit.TestFaultA6HigherIsolation/postgres15"] = "fail" },
		"unlisted test failed": func(r *gotest.Results) { r.Outcomes["emit.TestSomething"] = "fail" },
		"test gone":            func(r *gotest.Results) { delete(r.Outcomes, "emit.TestFaultA2UnknownOutcome/postgres18") },
		"test skipped": func(r *gotest.Results) {
			r.Outcomes["emit.TestFaultA1CrashBeforeCommit/postgres18"] = "skip"
		},
		"package did not end": func(r *gotest.Results) { delete(r.Outcomes, "emit") },
		"compile test gone":   func(r *gotest.Results) { delete(r.Outcomes, "drivers."+compileTest) },
		"test elsewhere gone": func(r *gotest.Results) { delete(r.Outcomes, "pgstore.TestTheBarrierIsACommit/postgres15") },
		"nothing ran":         func(r *gotest.Results) { *r = *gotest.New() },
		"corpus too small": func(r *gotest.Results) {
			set(r, "inputs", 199, "TestCorpus")
			set(r, "stored", 89, "TestCorpus")
		},
		"group too small":         figure("group_time", 9, "TestCorpus"),
		"counts do not add up":    figure("stored", 99, "TestCorpus"),
		"panic":                   figure("panics", 1, "TestCorpus"),
		"commit after refusal":    figure("commits_after_refusal", 109, "TestCorpus"),
		"outbox_emit disagrees":   figure("sql_agreed", 202, "TestCorpusInSQL"),
		"too few pairs":           figure("pairs", 199, "TestDedupeRace"),
		"pair without event":      figure("pair_rows", 199, "TestDedupeRace"),
		"pair with error":         figure("pair_errors", 1, "TestDedupeRace"),
		"pairs without rollbacks": figure("pair_rollbacks", 0, "TestDedupeRace"),
		"pairs that hardly raced": figure("pair_waits", 3, "TestDedupeRace"),
		"deadlock":                figure("deadlocks", 1, "TestFaultA7NoDeadlockWithinOneCall"),
		"too few rounds":          figure("rounds", 100, "TestFaultA7NoDeadlockWithinOneCall"),
		"too few mutants":         func(r *gotest.Results) { clear(r.Figures["mutants_found"]) },
		"figure of one server":    func(r *gotest.Results) { delete(r.Figures["inputs"], "emit.TestCorpus/postgres15") },
		"servers disagree":        func(r *gotest.Results) { r.Figures["inputs"]["emit.TestCorpus/postgres15"] = 300 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := perfect()
			spoil(found)
			r := check(found, servers)
			if r.ok() || !strings.HasSuffix(lastLineOf(t, r), "ok=false") {
				t.Error("the proof passes")
			}
		})
	}
	if check(perfect(), servers[:1]).ok() {
		t.Error("the proof passes with one server")
	}
}

// A machine that cannot mount a file system still gets a verdict, with the reason in the table.
func TestDiskFullMayBeSkippedWithItsReason(t *testing.T) {
	t.Parallel()
	found := perfect()
	for _, server := range servers {
		found.Outcomes["emit.TestFaultA20DiskFull/"+server] = "skip"
		found.Outputs["emit.TestFaultA20DiskFull/"+server] = "    disk_test.go:1: needs root\n--- SKIP: " +
			"TestFaultA20DiskFull\n"
	}
	r := check(found, servers)
	if !r.ok() || r.shown != 21 || len(r.skipped) != 1 {
		t.Errorf("shown=%d skipped=%v problems=%q", r.shown, r.skipped, r.problems)
	}
	var printed strings.Builder
	r.print(&printed)
	if !strings.Contains(printed.String(), "needs root") {
		t.Error("the reason is not printed")
	}
}
