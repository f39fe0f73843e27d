package inbox

import (
	"os"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/gotest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/mutants"
)

// programs has the program whose processes die.
var programs mutants.Programs

func TestMain(m *testing.M) {
	code := goroutines.Run(m)
	programs.Remove()
	os.Exit(code)
}

func program(t *testing.T) string {
	t.Helper()
	return programs.Build(t, command, "crash")
}

// small is a plan of some seconds. It plays scenarios, and runs no tests.
func small(t *testing.T, scenarios ...string) Plan {
	t.Helper()
	return Plan{
		Scenarios: scenarios, Events: 200, Passages: 8, Lost: 3, Stills: 2, Outages: 2, Slow: 4, Patience: 2 * time.Minute,
		Folder: t.TempDir(), Executable: program(t), Postgres: services.Postgres18(), Broker: services.NATS(),
	}
}

// play runs a plan and logs what it came to.
func play(t *testing.T, plan Plan) *Report {
	t.Helper()
	report, err := Run(t.Context(), plan, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Print(t.Output()); err != nil {
		t.Fatal(err)
	}
	return report
}

// allPass is what a run of all tests says in which all is well.
func allPass() *gotest.Results {
	results := gotest.New()
	for _, f := range faults {
		for _, test := range f.tests {
			results.Outcomes[lastPart(test)] = "pass"
		}
	}
	return results
}

// The shortest form. The whole proof is make proof-inbox.
func TestASmallKilling(t *testing.T) {
	t.Parallel()
	if !play(t, small(t, theKilling, theOneCall, theHopeless)).OK() {
		t.Error("it does not pass")
	}
}

// Every mistake must be found by the killing, and be called what it is.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		mutant, scenario, consumer string
		wrong                      map[form]form
		figure                     string
	}{
		{mutant: "marked-before-effect", scenario: theKilling, consumer: "killing-redis", figure: "lost"},
		{mutant: "held-taken-for-handled", scenario: theKilling, consumer: "killing-redis", figure: "early"},
		{mutant: "finish-without-token", scenario: theStandstill, consumer: "standstill-redis", figure: "unexplained"},
		{mutant: "first-by-looking", scenario: theKilling, consumer: "killing-postgres", figure: "double"},
		{wrong: map[form]form{inPostgres: apart}, scenario: theKilling, consumer: "killing-postgres", figure: "lost"},
		{wrong: map[form]form{inPostgres: unmarked}, scenario: theKilling, consumer: "killing-postgres", figure: "double"},
	} {
		name := m.mutant
		for _, wrong := range m.wrong {
			name = string(wrong)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := small(t, m.scenario)
			plan.Wrong = m.wrong
			plan.enough = func(tallies map[string]*tally) bool { return tallies[m.consumer].figures()[m.figure] > 0 }
			if m.mutant != "" {
				plan.Environment = []string{mutants.Chosen(m.mutant)}
			}
			report := play(t, plan)
			if report.Tallies[m.consumer].figures()[m.figure] == 0 || report.OK() {
				t.Errorf("it was not found as %s", m.figure)
			}
		})
	}
}
