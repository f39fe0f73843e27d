package crash

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/test/proof/mutants"
)

func TestTheMatrixIsTheList(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Concat(slices.Collect(maps.Keys(settings)), slices.Collect(maps.Keys(hooks))) {
		if _, known := describe(name); !known {
			t.Errorf("%s is not in the list", name)
		}
	}
	for _, d := range crash.List() {
		if _, hooked := hooks[d.Name]; hooked != d.OnServer {
			t.Errorf("%s: on the server is %t, and has a hook is %t", d.Name, d.OnServer, hooked)
		}
		if s := settings[d.Name]; d.OnServer && (s.passage > 0 || s.stop) {
			t.Errorf("%s: a point on the server is met once", d.Name)
		}
	}
}

// A misspelt point would never be reached, and nobody would know why.
func TestAPointThatDoesNotExistIsAnError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ orders, problem string }{
		{"settle.never", `no point is called "settle.never"`},
		{"migrate.before:x", "not the number of a passage"},
		{"migrate.before:0", "not the number of a passage"},
	} {
		s := staged(t, small(t), "claim.before")
		p, err := s.start(task{Role: migrates, RelayProcess: processIn(s.env.Run + "_new")}, test.orders)
		must(t, err)
		t.Cleanup(func() { _, _ = s.env.Pool.Exec(t.Context(), "DROP SCHEMA IF EXISTS "+s.env.Run+"_new CASCADE") })
		if !p.Await(t.Context(), patience) || p.Err() == nil || !strings.Contains(p.Said(), test.problem) {
			t.Errorf("%s: it ended with %v: %s", test.orders, p.Err(), p.LastWords())
		}
	}
	if _, err := Run(t.Context(), small(t, "settle.never"), t.Output()); err == nil {
		t.Error("the proof takes it")
	}
}

// The shortest way to every kind of death. The whole matrix is make proof-crash.
func TestDeathsOfAllKinds(t *testing.T) {
	t.Parallel()
	plan := small(t, "migrate.mid", "emit.after_insert", "publish.after_send", "settle.after_update",
		"settle.before_commit", "redrive.after_commit")
	if !play(t, plan).OK() {
		t.Error("it does not pass")
	}
}

// The proof must fail when a point is not reached, and not call that a success.
func TestAPointThatIsNotReachedIsMissed(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"quarantine.before", "redrive.after_insert"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			plan := small(t, point)
			plan.Patience = soon
			s, err := newTrial(plan, point)
			must(t, err)
			s.setting = setting{victim: relays, passage: 1} // no event is suspected, and relays redrive nothing
			outcome, err := s.run(t.Context())
			must(t, err)
			report := &Report{plan: plan, Outcomes: []*Outcome{outcome}}
			must(t, report.Print(t.Output()))
			if outcome.Hit || report.OK() {
				t.Error("it passes")
			}
			if v := outcome.Verdict; v.Count(check.Lost)+v.Count(check.Stuck)+v.Count(check.DuplicatesUnexplained) > 0 {
				t.Error("it blames the relay as well")
			}
		})
	}
}

// Too few events must not pass either.
func TestTooFewEventsAreMissed(t *testing.T) {
	t.Parallel()
	plan := small(t, "claim.before")
	plan.Least = 10_000
	if play(t, plan).OK() {
		t.Error("it passes")
	}
}

// Every mutant must be found at its point, and be called what it is.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		mutant, point string
		counter       check.Counter
		patience      time.Duration // for one that never comes to its point
		drain         time.Duration
	}{
		{"dead-letter-apart", "dead.before_insert", check.DeadWithoutLetter, patience, soon},
		{"dead-letter-apart", "dead.after_insert", check.DeadWithoutLetter, patience, soon},
		{"settle-before-ack", "publish.before_send", check.Lost, soon, drainTime},
	} {
		t.Run(m.mutant+" at "+m.point, func(t *testing.T) {
			t.Parallel()
			plan := small(t, m.point)
			plan.Patience, plan.Drain = m.patience, m.drain // what is dead without a letter blocks forever
			plan.Environment = []string{mutants.Chosen(m.mutant)}
			report := play(t, plan)
			if report.Sum(m.counter) == 0 || report.OK() {
				t.Errorf("it was not found as %s", m.counter)
			}
		})
	}
}

// The list that people read.
func TestTheCommandListsThePoints(t *testing.T) {
	t.Parallel()
	text, err := exec.CommandContext(t.Context(), program(t), "-list").Output()
	must(t, err)
	if got := bytes.Count(text, []byte("\n")); got != len(crash.List()) {
		t.Errorf("%d lines, want %d", got, len(crash.List()))
	}
}

// The page has the list, word for word.
func TestThePageHasThePoints(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/internals/crash-points.md")
	must(t, err)
	var lines []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, d := range crash.List() {
		where := "process"
		if d.OnServer {
			where = "server"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", d.Name, d.Where, where))
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the page has\n%s\n\nand the list\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
