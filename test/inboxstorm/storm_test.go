package inboxstorm

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/calm"
	"github.com/posthaste-dev/posthaste/test/gotest"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

// programs has the program of all tests.
var programs struct {
	sync.Mutex
	folder, built string
}

func TestMain(m *testing.M) {
	code := calm.Run(m)
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
		if programs.folder, err = os.MkdirTemp("", "test-inboxstorm-"); err != nil { //nolint:usetesting // several tests use it
			t.Fatal(err)
		}
		if programs.built, err = Build(context.Background(), programs.folder, "planted"); err != nil {
			t.Fatal(err)
		}
	}
	return programs.built
}

// small is a plan of some seconds. It plays scenes, and runs no tests.
func small(t *testing.T, scenes ...string) Plan {
	t.Helper()
	plan := Plan{
		Scenes: scenes, Events: 200, Passages: 8, Lost: 3, Stills: 2, Outages: 2, Slow: 4, Patience: 2 * time.Minute,
		Folder: t.TempDir(), Executable: program(t), Postgres: pgtest.Servers()[0].URL, Broker: "nats://127.0.0.1:14222",
	}
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
func TestASmallStorm(t *testing.T) {
	t.Parallel()
	if !play(t, small(t, theStorm, theOneCall, theHopeless)).OK() {
		t.Error("it does not pass")
	}
}

// Every mistake must be found by the storm, and be called what it is.
func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, planted := range []struct {
		bug, scene, consumer string
		wrong                map[form]form
		figure               string
	}{
		{bug: "marked-before-effect", scene: theStorm, consumer: "storm-redis", figure: "lost"},
		{bug: "held-taken-for-handled", scene: theStorm, consumer: "storm-redis", figure: "early"},
		{bug: "finish-without-token", scene: theStandstill, consumer: "standstill-redis", figure: "unexplained"},
		{bug: "first-by-looking", scene: theStorm, consumer: "storm-postgres", figure: "double"},
		{wrong: map[form]form{inPostgres: apart}, scene: theStorm, consumer: "storm-postgres", figure: "lost"},
		{wrong: map[form]form{inPostgres: unmarked}, scene: theStorm, consumer: "storm-postgres", figure: "double"},
	} {
		name := planted.bug
		for _, wrong := range planted.wrong {
			name = string(wrong)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := small(t, planted.scene)
			plan.Wrong = planted.wrong
			plan.enough = func(tallies map[string]*tally) bool { return tallies[planted.consumer].figures()[planted.figure] > 0 }
			if planted.bug != "" {
				plan.Environment = []string{"POSTHASTE_PLANTED=" + planted.bug}
			}
			report := play(t, plan)
			if report.Tallies[planted.consumer].figures()[planted.figure] == 0 || report.OK() {
				t.Errorf("it was not found as %s", planted.figure)
			}
		})
	}
}
