package marketplace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
)

// TestMain lets the test's program be a worker with a mistake.
func TestMain(m *testing.M) {
	if mutant := os.Getenv(mutantVariable); mutant != "" {
		standIn(mutant)
		return
	}
	os.Exit(goroutines.Run(m, goroutines.Linked))
}

// programs builds the marketplace, with this program as its worker.
func programs(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	const commands = "github.com/posthaste-dev/posthaste/examples/marketplace/cmd/"
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", folder,
		commands+"setup", commands+"api", commands+"outbox-publisher")
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

// TestMutantsAreFound: workers with a mistake fail for it, and the one without passes.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	folder := programs(t)
	for _, test := range []struct{ mutant, inbox, want string }{
		{mutantNone, Postgres, ""},
		{mutantForgets, Postgres, "notices came twice"},
		{mutantHurries, Postgres, "changes of licences have no notice"},
		{mutantPresumes, Redis, "changes of licences have no notice"},
	} {
		t.Run(test.mutant, func(t *testing.T) {
			t.Parallel()
			round, err := Play(t.Context(), Plan{
				Programs: folder, Postgres: services.Postgres18(), Folder: t.TempDir(),
				Environment: []string{mutantVariable + "=" + test.mutant, "GORACE=atexit_sleep_ms=0"},
				Load:        6 * time.Second, Rate: 30, Clients: 6, Every: 100 * time.Millisecond, Kills: 2, Drain: 2 * time.Minute,
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
