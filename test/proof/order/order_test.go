package order_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/order"
)

// standInBug names, in the environment of a process, the bug of the stand-in that runs instead of our relay.
const standInBug = "POSTHASTE_ORDER_STAND_IN"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "relay" {
		if err := live(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The race detector lets every relay sleep for a second before it ends.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(goroutines.Run(m, goroutines.Linked))
}

// live is a process of a relay, as the command runs it.
func live(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if bug, given := os.LookupEnv(standInBug); given {
		return torture.RunRelay(ctx, file, newStandIn(bug))
	}
	return torture.RunRelay(ctx, file, torture.Relay)
}

// tiny is a run of a few seconds.
func tiny(t *testing.T) torture.Plan {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return torture.Plan{
		Name: order.Name, Postgres: services.Postgres18(), Broker: services.NATS(), Folder: t.TempDir(),
		Executable: executable,
		Relays:     2, Aggregates: 40, Events: 1200, Production: 3 * time.Second, Producers: 8, Lease: 3 * time.Second,
		Drain: 20 * time.Second, Seed: 1, Audit: true,
	}
}

func play(t *testing.T, plan torture.Plan) *torture.Report {
	t.Helper()
	report, err := torture.Run(t.Context(), plan, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	return report
}

// Relays that work must pass, or what is found below is found everywhere.
func TestGoodRelaysPass(t *testing.T) {
	t.Parallel()
	for _, good := range []struct {
		name        string
		environment []string
	}{
		{"ours", nil},
		{"stand-in", []string{standInBug + "=" + noBug}},
	} {
		t.Run(good.name, func(t *testing.T) {
			t.Parallel()
			plan := underFaults(tiny(t))
			plan.Environment, plan.WithoutCopies = good.environment, good.environment != nil
			if !play(t, plan).OK() {
				t.Error("it does not pass")
			}
		})
	}
}

// underBlows has kills, pauses, leaves and an outage.
func underFaults(plan torture.Plan) torture.Plan {
	plan.Schedule = []torture.Fault{
		torture.Kills(time.Second, 1), torture.Pauses(time.Second, 1), torture.Leaves(time.Second, 1),
		torture.Outages(3*time.Second, 0),
	}
	plan.Production = 6 * time.Second
	return plan
}

// Every bug must be found, and be called what it is.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	for _, mutant := range []struct {
		name        string
		standIn     string // noBug: the relay is ours, and the bug is the publisher's
		ofPublisher string
		faults      bool
		outage      bool
		counter     check.Counter
		audit       string // a figure of the audit that must not be zero either
	}{
		{name: "publisher swaps two messages", ofPublisher: torture.MutantSwap, counter: check.OrderViolations},
		{name: "publisher drops messages", ofPublisher: torture.MutantDrop, counter: check.Lost, audit: "audit_missing"},
		{name: "publisher alters messages", ofPublisher: torture.MutantAlter, counter: check.Corrupted},
		{
			name: "publisher sends twice", ofPublisher: torture.MutantTwice, counter: check.DuplicatesUnexplained,
			audit: "audit_twice",
		},
		{
			name: "publisher invents messages", ofPublisher: torture.MutantInvent, counter: check.Phantom,
			audit: "audit_unknown",
		},
		{name: "relay has a cursor without a watermark", standIn: bugCursor, counter: check.Stuck},
		{name: "relay settles without its lane", standIn: bugUnfenced, faults: true, counter: check.StaleSettlesApplied},
		{name: "relay ends others that are alive", standIn: bugImpatient, counter: check.OwnersOverlapping},
		{name: "relay charges for outages", standIn: bugChargesAll, outage: true, counter: check.ChargedWrongly},
		{name: "relay passes a dead head", standIn: bugNoBlock, counter: check.OrderViolations},
		{name: "relay passes a retry", standIn: bugFollowers, counter: check.OrderViolations},
		{name: "relay keeps what it has published as held", standIn: bugKeepsHeld, counter: check.RowWithoutHeld},
		{name: "relay holds events, and not how", standIn: bugLosesHeld, counter: check.HeldWithoutRow},
		{name: "relay forgets to settle", standIn: bugUnsettled, counter: check.DuplicatesUnexplained},
	} {
		t.Run(mutant.name, func(t *testing.T) {
			t.Parallel()
			plan := tiny(t)
			if mutant.standIn != noBug {
				plan.Environment, plan.WithoutCopies = []string{standInBug + "=" + mutant.standIn}, true
			}
			plan.Mutant, plan.Drain = mutant.ofPublisher, 4*time.Second
			if mutant.outage {
				plan.Schedule = []torture.Fault{torture.Outages(time.Second, 1)}
			}
			if mutant.faults {
				plan = underFaults(plan)
			}
			switch mutant.standIn {
			case bugUnfenced:
				// Both relays in turn, so that every other pause hits the one that holds the lanes.
				plan.Schedule, plan.Production = []torture.Fault{torture.Pauses(500*time.Millisecond, 4)}, 6*time.Second
			case bugNoBlock:
				// Many dead heads, which lie there until events that belong behind them have come.
				plan.Doomed, plan.Patience = 60, time.Second
			}
			report := play(t, plan)
			if v := report.Verdict; v.Count(mutant.counter) == 0 || v.Pass() {
				t.Errorf("it was not found as %s", mutant.counter)
			}
			if at := slices.IndexFunc(report.Figures, func(f torture.Figure) bool {
				return f.Name == mutant.audit
			}); mutant.audit != "" && (at < 0 || report.Figures[at].Value == 0) {
				t.Errorf("the audit did not find it as %s", mutant.audit)
			}
		})
	}
}
