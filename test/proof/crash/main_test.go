package crash

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/mutants"
)

// programs has the program whose processes die.
var programs mutants.Programs

func TestMain(m *testing.M) {
	code := goroutines.Run(m, goroutines.Linked)
	programs.Remove()
	os.Exit(code)
}

func program(t *testing.T) string {
	t.Helper()
	return programs.Build(t, command, "crash")
}

// small is a plan of a few seconds.
func small(t *testing.T, points ...string) Plan {
	t.Helper()
	plan := Short()
	plan.Points, plan.Folder, plan.Executable = points, t.TempDir(), program(t)
	plan.Postgres, plan.Broker = services.Postgres18(), services.NATS()
	return plan
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

// staged is a trial whose play the test writes itself. It has an env, and no victim yet.
func staged(t *testing.T, plan Plan, point string) *trial {
	t.Helper()
	s, err := newTrial(plan, point)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		if s.end(&err); err != nil {
			t.Error(err)
		}
	})
	if err := s.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// must ends the test where a step of a staged trial fails.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// soon is how long a test that wants a process not to die waits for it.
const soon = 4 * time.Second

func processIn(schema string) torture.RelayProcess { return torture.RelayProcess{Run: schema} }
