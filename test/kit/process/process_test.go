package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// TestMain is the program that the tests start, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "live" {
		os.Exit(live(os.Args[2]))
	}
	os.Exit(goroutines.Run(m))
}

// told is what a life of a test is told.
type told struct {
	Code int `json:"code"`
}

// live ends with the code that it is told, or stays if that is 0.
func live(file string) int {
	var l told
	if err := process.Told(file, &l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	fmt.Println("alive at", os.Getenv("POSTHASTE_CRASH"), os.Getenv("MORE")) //nolint:forbidigo // for the parent
	if l.Code == 0 {
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent is gone
	}
	return l.Code
}

func start(t *testing.T, code int) *process.Process {
	t.Helper()
	p, err := process.Child{
		Executable: os.Args[0], Folder: t.TempDir(), Name: "a", Told: told{code}, Point: "here:2",
		Environment: []string{"MORE=more"},
	}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	eventually.True(t, "it speaks", func() bool { return strings.Contains(p.Said(), "\n") })
	if p.LastWords() != "alive at here:2 more" {
		t.Errorf("it says %q", p.Said())
	}
	return p
}

func TestAProcessThatEnds(t *testing.T) {
	t.Parallel()
	p := start(t, 3)
	if !p.Await(t.Context(), eventually.Patience) || p.Alive() || p.ExitCode() != 3 || p.Err() == nil ||
		p.KilledBy(syscall.SIGKILL) {
		t.Errorf("it ended with %v", p.Err())
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal for nobody: %v", err)
	}
}

func TestAProcessThatIsEnded(t *testing.T) {
	t.Parallel()
	p := start(t, 0)
	if p.Await(t.Context(), time.Millisecond) || !p.Alive() || p.KilledBy(syscall.SIGTERM) {
		t.Fatal("it does not live")
	}
	if err := p.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped, err := p.Stop(t.Context(), 100*time.Millisecond) // which it does not hear of
	if err != nil || stopped || !p.KilledBy(syscall.SIGKILL) || p.ExitCode() >= 0 {
		t.Errorf("stopped %v, %v: it ended with %v", stopped, err, p.Err())
	}
	other := start(t, 0)
	if stopped, err := other.Stop(t.Context(), eventually.Patience); err != nil || !stopped ||
		!other.KilledBy(syscall.SIGTERM) {
		t.Errorf("stopped %v, %v: it ended with %v", stopped, err, other.Err())
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	if _, err := process.Start(process.Command{Program: "/no/such/program", Log: log}); err == nil {
		t.Error("no such program")
	}
	if _, err := process.Start(process.Command{Program: os.Args[0], Log: "/no/such/folder/log"}); err == nil {
		t.Error("no such folder")
	}
	if _, err := (process.Child{Told: func() {}}).Start(); err == nil {
		t.Error("nothing that JSON can tell")
	}
	if _, err := process.BuildDeadly(context.Background(), t.TempDir(), "example.com/no/such"); err == nil {
		t.Error("no such command")
	}
}
