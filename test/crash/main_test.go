package crash

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/posthaste-dev/posthaste/test/calm"
	"github.com/posthaste-dev/posthaste/test/pgtest"
	"github.com/posthaste-dev/posthaste/torture"
)

// programs has the program of all tests.
var programs struct {
	sync.Mutex
	folder, built string
}

func TestMain(m *testing.M) {
	// A client of Google's that torture links starts a goroutine when the program begins.
	opencensus := goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start")
	code := calm.Run(m, opencensus)
	if programs.folder != "" {
		_ = os.RemoveAll(programs.folder) // of no consequence
	}
	os.Exit(code)
}

// program builds the program whose processes die, once. It has mistakes in it, none of which is made if none is asked
// for.
func program(t *testing.T) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if programs.built == "" {
		var err error
		programs.folder, err = os.MkdirTemp("", "test-crash-") //nolint:usetesting // several tests use it
		must(t, err)
		programs.built, err = Build(context.Background(), programs.folder, "planted")
		must(t, err)
	}
	return programs.built
}

// small is a plan of a few seconds.
func small(t *testing.T, points ...string) Plan {
	t.Helper()
	plan := Short()
	plan.Points, plan.Folder, plan.Executable = points, t.TempDir(), program(t)
	plan.Postgres = pgtest.Servers()[0].URL
	plan.Broker = "nats://127.0.0.1:14222"
	if at := os.Getenv("POSTHASTE_NATS_URL"); at != "" {
		plan.Broker = at
	}
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

// staged is a trial whose play the test writes itself. It has a world, and no victim yet.
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

func lifeIn(schema string) torture.Life { return torture.Life{Run: schema} }

// whole is all that a process said.
func whole(t *testing.T, p *process) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	must(t, err)
	return string(text)
}
