package order_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/test/calm"
	"github.com/posthaste-dev/posthaste/test/order"
	"github.com/posthaste-dev/posthaste/test/pgtest"
	"github.com/posthaste-dev/posthaste/torture"
)

// standInBug names, in the environment of a life, the bug of the stand-in that runs instead of our relay.
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
	os.Exit(calm.Run(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))) // a client library's, never ended
}

// live is a process of a relay, as the command runs it.
func live(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if bug, given := os.LookupEnv(standInBug); given {
		return torture.Live(ctx, file, newStandIn(bug))
	}
	return torture.Live(ctx, file, torture.Relay)
}

// tiny is a run of a few seconds.
func tiny(t *testing.T) torture.Plan {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	natsURL := os.Getenv("POSTHASTE_NATS_URL")
	if natsURL == "" {
		natsURL = "nats://127.0.0.1:14222"
	}
	return torture.Plan{
		Name: order.Name, Postgres: pgtest.Servers()[0].URL, Broker: natsURL, Folder: t.TempDir(), Executable: executable,
		Relays: 2, Aggregates: 40, Events: 1200, Production: 3 * time.Second, Producers: 8, Lease: 3 * time.Second, Drain: 20 * time.Second, Seed: 1,
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
			plan := underBlows(tiny(t))
			plan.Environment = good.environment
			if !play(t, plan).OK() {
				t.Error("it does not pass")
			}
		})
	}
}

// underBlows has kills, pauses, leaves and an outage.
func underBlows(plan torture.Plan) torture.Plan {
	plan.Storm = []torture.Blow{
		torture.Kills(time.Second, 1), torture.Pauses(time.Second, 1), torture.Leaves(time.Second, 1), torture.Outages(3*time.Second, 0),
	}
	plan.Production = 6 * time.Second
	return plan
}

// Every bug must be found, and be called what it is.
func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, planted := range []struct {
		name    string
		standIn string // noBug: the relay is ours, and the bug is the publisher's
		plant   string
		blows   bool
		outage  bool
		counter check.Counter
	}{
		{name: "publisher swaps two messages", plant: torture.PlantSwap, counter: check.OrderViolations},
		{name: "publisher drops messages", plant: torture.PlantDrop, counter: check.Lost},
		{name: "publisher alters messages", plant: torture.PlantAlter, counter: check.Corrupted},
		{name: "publisher sends twice", plant: torture.PlantTwice, counter: check.DuplicatesUnexplained},
		{name: "relay has a cursor without a watermark", standIn: bugCursor, counter: check.Stuck},
		{name: "relay settles without its lane", standIn: bugUnfenced, blows: true, counter: check.StaleSettlesApplied},
		{name: "relay charges for outages", standIn: bugChargesAll, outage: true, counter: check.ChargedWrongly},
		{name: "relay passes a dead head", standIn: bugNoBlock, counter: check.OrderViolations},
		{name: "relay passes a retry", standIn: bugFollowers, counter: check.OrderViolations},
		{name: "relay forgets to settle", standIn: bugUnsettled, counter: check.DuplicatesUnexplained},
	} {
		t.Run(planted.name, func(t *testing.T) {
			t.Parallel()
			plan := tiny(t)
			if planted.standIn != noBug {
				plan.Environment = []string{standInBug + "=" + planted.standIn}
			}
			plan.Plant, plan.Drain = planted.plant, 4*time.Second
			if planted.outage {
				plan.Storm = []torture.Blow{torture.Outages(time.Second, 1)}
			}
			if planted.blows {
				plan = underBlows(plan)
			}
			switch planted.standIn {
			case bugUnfenced:
				// Both relays in turn, so that every other pause strikes the one that holds the lanes.
				plan.Storm, plan.Production = []torture.Blow{torture.Pauses(500*time.Millisecond, 4)}, 6*time.Second
			case bugNoBlock:
				// Many dead heads, which lie there until events that belong behind them have come.
				plan.Doomed, plan.Patience = 60, time.Second
			}
			if v := play(t, plan).Verdict; v.Count(planted.counter) == 0 || v.Pass() {
				t.Errorf("it was not found as %s", planted.counter)
			}
		})
	}
}
