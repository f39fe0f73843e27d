package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/posthaste-dev/posthaste/test/calm"
	"github.com/posthaste-dev/posthaste/test/chaos"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

// TestMain lets the test's program be a worker with a mistake.
func TestMain(m *testing.M) {
	if plant := os.Getenv(plantVariable); plant != "" {
		standIn(plant)
		return
	}
	os.Exit(calm.Run(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))) // a client library's, never ended
}

// programs builds the marketplace, with this program as its worker.
func programs(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	const commands = "github.com/posthaste-dev/posthaste/examples/marketplace/cmd/"
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", folder, commands+"setup", commands+"api", commands+"outbox-publisher")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, said)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(folder, "worker"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestPlantedMistakesAreFound: workers with a mistake fail for it, and the one without passes.
func TestPlantedMistakesAreFound(t *testing.T) {
	t.Parallel()
	folder := programs(t)
	for _, test := range []struct{ plant, inbox, want string }{
		{plantNothing, Postgres, ""},
		{plantForgets, Postgres, "notices came twice"},
		{plantHurries, Postgres, "changes of licences have no notice"},
		{plantPresumes, Redis, "changes of licences have no notice"},
	} {
		t.Run(test.plant, func(t *testing.T) {
			t.Parallel()
			round, err := Play(t.Context(), Plan{
				Programs: folder, Postgres: pgtest.Servers()[0].URL, Folder: t.TempDir(), Environment: []string{plantVariable + "=" + test.plant, "GORACE=atexit_sleep_ms=0"},
				Load: 6 * time.Second, Rate: 30, Clients: 6, Every: 100 * time.Millisecond, Kills: 2, Drain: 2 * time.Minute,
			}, chaos.NATS, test.inbox, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(round.Problems(), "\n")
			if test.want == "" && problems != "" || !strings.Contains(problems, test.want) {
				t.Errorf("found %q, want %q", problems, test.want)
			}
		})
	}
}
