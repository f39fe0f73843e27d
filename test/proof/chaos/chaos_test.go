package chaos_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/process"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
)

// TestMain lets the test's program be a relay or the emulator, as the proof's is.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && (os.Args[1] == "relay" || os.Args[1] == server.Emulator) {
		if err := part(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // the relays end a second sooner
	os.Exit(goroutines.Run(m, goroutines.Linked, goroutines.Received))
}

func part(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if args[0] == server.Emulator {
		return server.RunEmulator(ctx, args[1], args[2], args[3])
	}
	return torture.RunRelay(ctx, args[1], torture.Relay)
}

// Bugs of the publisher must be found in the middle of everything else, and be called what they are.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	for _, mutant := range []struct {
		broker, ofPublisher string
		counter             check.Counter
		// one event in fifty is hit, and of those that are swapped some never have another behind them
		rate int
	}{
		{chaos.PubSub, torture.MutantSwap, check.OrderViolations, 300},
		{chaos.NATS, torture.MutantDrop, check.Lost, 120},
		{chaos.NATS, torture.MutantTwice, check.DuplicatesUnexplained, 120},
		{chaos.PubSub, torture.MutantAlter, check.Corrupted, 120},
	} {
		t.Run(mutant.broker+" "+mutant.ofPublisher, func(t *testing.T) {
			t.Parallel()
			executable, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			// Few things, so that one which is swapped soon has another behind it.
			plan := chaos.Plan{
				Duration: 12 * time.Second, Rate: mutant.rate, Aggregates: 50, Seed: 1, Folder: t.TempDir(), Executable: executable,
				Mutant: mutant.ofPublisher,
			}
			report, err := chaos.Half(t.Context(), plan, mutant.broker, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			t.Log(torture.Line(report.Name, report))
			if report.Verdict.Count(mutant.counter) == 0 || report.OK() {
				t.Errorf("it was not found as %s", mutant.counter)
			}
		})
	}
}

// outbox-torture says why it does not run on a standby.
func TestOutboxTortureRejectsAStandby(t *testing.T) {
	t.Parallel()
	program, err := process.Built(t.Context(), "cmd/outbox-torture")
	if err != nil {
		t.Fatal(err)
	}
	primary, err := cluster.New(t.Context(), cluster.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = primary.Close() })
	standby, err := primary.Standby(t.Context(), "standby")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Close() })
	run := exec.CommandContext(t.Context(), program, "-postgres", standby.URL(), "-broker", "nats://127.0.0.1:14222")
	text, err := run.CombinedOutput()
	if code := run.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(text), "is a standby") {
		t.Errorf("exit code %d, %v:\n%s", code, err, text)
	}
}
