package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var servers = []string{"postgres18", "postgres15"}

// perfect is a run in which everything went well.
func perfect() *results {
	found := newResults()
	pass := func(name string) { found.outcomes[name] = "pass" }
	pass("emit")
	for name := range elsewhere {
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
		"TestCorpus":                         {"inputs": 210, "stored": 100, "refused": 110, "panics": 0, "commits_after_refusal": 110},
		"TestCorpusInSQL":                    {"sql_inputs": 205, "sql_agreed": 203, "sql_differs": 2},
		"TestDedupeRace":                     {"pairs": 200, "pair_rows": 200, "pair_errors": 0, "pair_rollbacks": 132, "pair_waits": 100},
		"TestFaultA7NoDeadlockWithinOneCall": {"rounds": 200, "deadlocks": 0},
	}
	for _, group := range groups {
		figures["TestCorpus"]["group_"+group] = 30
	}
	for test, values := range figures {
		for name, n := range values {
			found.set(name, n, test)
		}
	}
	for i := range minPlanted {
		found.add(line{Action: "attr", Package: module + "emit", Test: fmt.Sprintf("TestPlanted/%d", i), Key: "planted_found", Value: "1"})
	}
	return found
}

func (r *results) set(name string, n int, test string) {
	for _, server := range servers {
		r.add(line{Action: "attr", Package: module + "emit", Test: test + "/" + server, Key: name, Value: fmt.Sprint(n)})
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
	r := judge(perfect(), servers)
	if !r.ok() {
		t.Fatalf("want a pass, got %q", r.problems)
	}
	want := "proof-emit servers=2 faults=24 shown=22 later=2 skipped=0 inputs=210 stored=100 refused=110 panics=0 commits_after_refusal=110" +
		" sql_inputs=205 sql_agreed=203 sql_differs=2 pairs=200 pair_rows=200 pair_errors=0 pair_rollbacks=132 pair_waits=100 rounds=200 deadlocks=0 planted=10 ok=true"
	if got := lastLineOf(t, r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Whatever was missed, or not tried often enough, must fail the proof.
func TestProofFails(t *testing.T) {
	t.Parallel()
	set := func(name string, n int, test string) func(*results) {
		return func(r *results) { r.set(name, n, test) }
	}
	for name, spoil := range map[string]func(*results){
		"test failed":             func(r *results) { r.outcomes["emit.TestFaultA6HigherIsolation/postgres15"] = "fail" },
		"unlisted test failed":    func(r *results) { r.outcomes["emit.TestSomething"] = "fail" },
		"test gone":               func(r *results) { delete(r.outcomes, "emit.TestFaultA2UnknownOutcome/postgres18") },
		"test skipped":            func(r *results) { r.outcomes["emit.TestFaultA1CrashBeforeCommit/postgres18"] = "skip" },
		"package did not end":     func(r *results) { delete(r.outcomes, "emit") },
		"compile test gone":       func(r *results) { delete(r.outcomes, "drivers."+compileTest) },
		"test elsewhere gone":     func(r *results) { delete(r.outcomes, "pgstore.TestTheBarrierIsACommit/postgres15") },
		"nothing ran":             func(r *results) { *r = *newResults() },
		"corpus too small":        func(r *results) { r.set("inputs", 199, "TestCorpus"); r.set("stored", 89, "TestCorpus") },
		"group too small":         set("group_time", 9, "TestCorpus"),
		"counts do not add up":    set("stored", 99, "TestCorpus"),
		"panic":                   set("panics", 1, "TestCorpus"),
		"commit after refusal":    set("commits_after_refusal", 109, "TestCorpus"),
		"outbox_emit disagrees":   set("sql_agreed", 202, "TestCorpusInSQL"),
		"too few pairs":           set("pairs", 199, "TestDedupeRace"),
		"pair without event":      set("pair_rows", 199, "TestDedupeRace"),
		"pair with error":         set("pair_errors", 1, "TestDedupeRace"),
		"pairs without rollbacks": set("pair_rollbacks", 0, "TestDedupeRace"),
		"pairs that hardly raced": set("pair_waits", 3, "TestDedupeRace"),
		"deadlock":                set("deadlocks", 1, "TestFaultA7NoDeadlockWithinOneCall"),
		"too few rounds":          set("rounds", 100, "TestFaultA7NoDeadlockWithinOneCall"),
		"too few planted bugs":    func(r *results) { clear(r.figures["planted_found"]) },
		"figure of one server":    func(r *results) { delete(r.figures["inputs"], "emit.TestCorpus/postgres15") },
		"servers disagree":        func(r *results) { r.figures["inputs"]["emit.TestCorpus/postgres15"] = 300 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := perfect()
			spoil(found)
			r := judge(found, servers)
			if r.ok() || !strings.HasSuffix(lastLineOf(t, r), "ok=false") {
				t.Error("the proof passes")
			}
		})
	}
	if judge(perfect(), servers[:1]).ok() {
		t.Error("the proof passes with one server")
	}
}

// A machine that cannot mount a file system still gets a verdict, with the reason in the table.
func TestDiskFullMayBeSkippedWithItsReason(t *testing.T) {
	t.Parallel()
	found := perfect()
	for _, server := range servers {
		found.outcomes["emit.TestFaultA20DiskFull/"+server] = "skip"
		found.outputs["emit.TestFaultA20DiskFull/"+server] = "    disk_test.go:1: needs root\n--- SKIP: TestFaultA20DiskFull\n"
	}
	r := judge(found, servers)
	if !r.ok() || r.shown != 21 || len(r.skipped) != 1 {
		t.Errorf("shown=%d skipped=%v problems=%q", r.shown, r.skipped, r.problems)
	}
	var printed strings.Builder
	r.print(&printed)
	if !strings.Contains(printed.String(), "needs root") {
		t.Error("the reason is not printed")
	}
}

func TestReadsGoTest(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, l := range []line{
		{Action: "run", Package: module + "emit", Test: "TestA/postgres18"},
		{Action: "attr", Package: module + "emit", Test: "TestA/postgres18", Key: "inputs", Value: "7"},
		{Action: "output", Package: module + "emit", Test: "TestA/postgres18", Output: "said\n"},
		{Action: "pass", Package: module + "emit", Test: "TestA/postgres18"},
		{Action: "fail", Package: module + "emit"},
	} {
		encoded, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(encoded, '\n'))
	}
	found := newResults()
	if err := found.read(strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(found.outcomes, map[string]string{"emit.TestA/postgres18": "pass", "emit": "fail"}) {
		t.Errorf("outcomes: %v", found.outcomes)
	}
	if found.figures["inputs"]["emit.TestA/postgres18"] != 7 || found.outputs["emit.TestA/postgres18"] != "said\n" {
		t.Errorf("figures: %v, outputs: %q", found.figures, found.outputs)
	}
	if err := found.read(strings.NewReader("no JSON\n")); err == nil {
		t.Error("what is not JSON was read")
	}
}
