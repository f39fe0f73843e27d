package mutants

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

func TestEveryMutantIsDescribed(t *testing.T) {
	t.Parallel()
	names := map[string]int{}
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`)
	fault := regexp.MustCompile(`^([ACDILPRSV][0-9]+|(S|OP|RG|EM)-[0-9]+)$`)
	for _, m := range all() {
		names[m.name]++
		if names[m.name] > 1 || !name.MatchString(m.name) || len(m.mistake) < 20 || !fault.MatchString(m.of) ||
			len(m.changes) == 0 {
			t.Errorf("%s (%d): %s, %s", m.name, names[m.name], m.of, m.mistake)
		}
	}
	if len(names) < least {
		t.Errorf("%d mutants, at least %d are needed", len(names), least)
	}
}

// A test or a figure that is named must be there, or it would never be seen to fail.
func TestProofsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	for _, m := range all() {
		for _, name := range m.proof.tests {
			files, err := filepath.Glob(filepath.Join("..", "..", "..", m.proof.build.folder, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				found = found || bytes.Contains(text, []byte("\nfunc "+name+"(t *testing.T)"))
			}
			if !found {
				t.Errorf("%s: %s has no %s", m.name, m.proof.build.folder, name)
			}
		}
	}
}

// Every mutant is recognised by something: words of its test that say more than that it failed, or a figure.
func TestEveryMutantIsFoundForWhatItIs(t *testing.T) {
	t.Parallel()
	for _, m := range all() {
		if m.proof.counter != "" {
			continue
		}
		if says, err := regexp.Compile(m.proof.says); err != nil || len(m.proof.says) < 8 ||
			says.MatchString("--- FAIL: "+m.proof.tests[0]+" (0.01s)") {
			t.Errorf("%s: %q does not tell what is found: %v", m.name, m.proof.says, err)
		}
	}
}

// What counts as caught, and what does not.
func TestOnlyTheRightFailureCounts(t *testing.T) {
	t.Parallel()
	one, sim := test("relay", "TestOne", `it is [2-9]`), seeds(30, "order")
	const (
		passes = "=== RUN   TestOne\n--- PASS: TestOne (0.00s)\nPASS\n"
		fails  = "=== RUN   TestOne\n    one_test.go:1: it is 2\n--- FAIL: TestOne (0.00s)\nFAIL\n"
	)
	for _, c := range []struct {
		name           string
		proof          proof
		outcome        outcome
		passed, caught bool
	}{
		{"a test passes", one, outcome{0, passes}, true, false},
		{"a test fails", one, outcome{1, fails}, false, true},
		{
			"a test fails for another reason", one,
			outcome{1, strings.ReplaceAll(fails, "it is 2", "no connection")},
			false, false,
		},
		{
			"a test says it, and passes", one,
			outcome{0, strings.ReplaceAll(passes, "\n---", "\n    one_test.go:1: it is 2\n---")},
			false, false,
		},
		{"another test fails", one, outcome{1, passes + "--- FAIL: TestOneMore (0.00s)\n"}, false, false},
		{"a test is gone", one, outcome{0, "testing: warning: no tests to run\nPASS\n"}, false, false},
		{"a test panics", one, outcome{2, fails + "panic: nil map\n"}, false, false},
		{"a test panics and goes on", one, outcome{1, fails + "panic: nil map\n"}, false, false},
		{
			"a test speaks of a panic", one,
			outcome{1, strings.ReplaceAll(fails, "it is 2", "after a panic: it is 2")},
			false, true,
		},
		{"a test hangs", one, outcome{-1, "=== RUN   TestOne\n"}, false, false},
		{"a test fails and hangs", one, outcome{-1, fails}, false, false},
		{"nothing passes, and all is said to be well", one, outcome{0, ""}, false, false},
		{
			"seeds pass", sim,
			outcome{1, "too little was tested: 30\nproof-sim seeds=30 order=0 seeds_failed=0 ok=false\n"},
			true, false,
		},
		{"seeds fail", sim, outcome{1, "proof-sim seeds=30 order=7 seeds_failed=2 ok=false\n"}, false, true},
		{
			"seeds fail otherwise", sim,
			outcome{1, "proof-sim seeds=30 order=0 disorder=3 seeds_failed=2 ok=false\n"},
			false, false,
		},
		{
			"seeds panic", sim,
			outcome{1, "seed 3: panic: nil map\nproof-sim seeds=30 order=7 seeds_failed=2 ok=false\n"},
			false, false,
		},
		{"seeds have no line", sim, outcome{1, "order=7 seeds_failed=0\n"}, false, false},
		{"seeds have no such figure", sim, outcome{1, "proof-sim seeds=30 ok=false\n"}, false, false},
	} {
		if problem := c.proof.passed(c.outcome); (problem == "") != c.passed {
			t.Errorf("%s: passed says %q", c.name, problem)
		}
		if problem := c.proof.caught(c.outcome); (problem == "") != c.caught {
			t.Errorf("%s: caught says %q", c.name, problem)
		}
	}
}

// A run that hangs is ended, and has neither passed nor caught anything.
func TestARunThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	r := &runner{root: t.TempDir(), folder: t.TempDir(), hung: 100 * time.Millisecond}
	p := proof{build: build{folder: "sleep"}, args: []string{"600"}}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, r.program(p.build)); err != nil {
		t.Fatal(err)
	}
	if o := r.run(t.Context(), &p, variable+"=a-mutant"); o.exit != -1 ||
		!strings.Contains(p.caught(o), "did not end in time") {
		t.Errorf("it ended with %d: %s", o.exit, p.caught(o))
	}
}

// Every must can be missed.
func TestReport(t *testing.T) {
	t.Parallel()
	good := func() *Report {
		r := &Report{}
		for range least {
			r.Findings = append(r.Findings, Finding{Mutant: "a-mutant", Proof: "a proof", Took: time.Second})
		}
		r.addClean(map[string]string{"a proof": ""})
		return r
	}
	n := strconv.Itoa(least)
	want := "proof-mutants mutants=" + n + " caught=" + n + " missed=0 proofs=1 clean=1 seconds=0 slowest_ms=1000 ok=true"
	if r := good(); len(r.Problems()) != 0 || r.Line() != want {
		t.Errorf("%s, %v", r.Line(), r.Problems())
	}
	for what, spoil := range map[string]func(*Report){
		"was not caught": func(r *Report) { r.Findings[3].Missed = "it passed" },
		"does not pass":  func(r *Report) { r.addClean(map[string]string{"a proof": "it fails"}) },
		"too little":     func(r *Report) { r.Findings = r.Findings[1:] },
		"0 mutants":      func(r *Report) { r.Findings, r.One = nil, true },
	} {
		r := good()
		spoil(r)
		if problems := strings.Join(r.Problems(), "\n"); !strings.Contains(problems, what) ||
			!strings.HasSuffix(r.Line(), "ok=false") {
			t.Errorf("%s: %q, %s", what, problems, r.Line())
		}
	}
}
