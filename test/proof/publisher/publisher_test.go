package publisher_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

// TestMain lets the test's program be the emulator, as the proof's is, or a publisher with a mistake.
func TestMain(m *testing.M) {
	if mutant := os.Getenv(mutantVariable); mutant != "" {
		standIn(mutant)
	}
	if len(os.Args) == 5 && os.Args[1] == server.Emulator {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := server.RunEmulator(ctx, os.Args[2], os.Args[3], os.Args[4])
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(goroutines.Run(m, goroutines.Linked))
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// wanted fails if the problems are not those of the mutant.
func wanted(t *testing.T, problems []string, want string) {
	t.Helper()
	all := strings.Join(problems, "\n")
	if want == "" && all != "" || !strings.Contains(all, want) {
		t.Errorf("want %q, the problems are:\n%s", want, all)
	}
}

// mistake is a mutant, and what must be found of it.
type mistake struct {
	mutant, want string
	// lease is the publisher's. Defaults to its own: a machine that stands still for less than that changes nothing.
	// One whose mistake is found anyhow has a short one, which ends sooner.
	lease string
	// patience is for those that never go on. Defaults to the proof's.
	patience time.Duration
}

// environment is what the stand-in's process gets. The race detector lets a process sleep for a second before it ends.
func (m mistake) environment() []string {
	list := []string{mutantVariable + "=" + m.mutant, "GORACE=atexit_sleep_ms=0"}
	if m.lease != "" {
		list = append(list, "POSTHASTE_RELAY_LEASE="+m.lease)
	}
	return list
}

// Every mistake of a publisher must be found, and be called what it is; one without passes.
func TestSurvive(t *testing.T) {
	t.Parallel()
	for _, m := range []mistake{
		{mutant: mutantNone},
		{mutant: mutantSulks, want: "it did not drain", lease: "5s", patience: 8 * time.Second},
		{mutant: mutantCharges, want: "were charged for what was not their fault", lease: "5s", patience: 5 * time.Second},
		{mutant: mutantDrops, want: "lost: ", lease: "5s"},
		{mutant: mutantTwice, want: "that nothing happened to", lease: "5s"},
		{mutant: mutantDies, want: "the process did not survive", lease: "5s"},
	} {
		t.Run(m.mutant, func(t *testing.T) {
			t.Parallel()
			plan := publisher.Short()
			plan.Binary, plan.Executable, plan.Folder, plan.Environment = executable(t), executable(t), t.TempDir(),
				m.environment()
			plan.Outage, plan.Waiting = 4*time.Second, 300
			plan.Patience = cmp.Or(m.patience, plan.Patience)
			half, err := publisher.Survive(t.Context(), plan, chaos.NATS, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			wanted(t, half.Problems(), m.want)
		})
	}
}

// The same for stops.
func TestStopAll(t *testing.T) {
	t.Parallel()
	for _, m := range []mistake{
		{mutant: mutantNone},
		{mutant: mutantDrops, want: "lost: "},
		{mutant: mutantTwice, want: "messages were sent twice"},
		{mutant: mutantQuits, want: "lanes when it was gone", lease: "3s"},
		{mutant: mutantLingers, want: "at most 2s is allowed"},
		{mutant: mutantComplains, want: "ended with exit code 1"},
	} {
		t.Run(m.mutant, func(t *testing.T) {
			t.Parallel()
			plan := publisher.ShortStops()
			plan.Binary, plan.Folder, plan.Environment = executable(t), t.TempDir(), m.environment()
			plan.Postgres, plan.NATS = services.Postgres18(), services.NATS()
			plan.Rounds, plan.Waiting, plan.Aggregates = 4, 1000, 150
			if m.mutant == mutantLingers {
				plan.Limit = 2 * time.Second
			}
			report, err := publisher.StopAll(t.Context(), plan, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			wanted(t, report.Problems(), m.want)
		})
	}
}

// A probe that fails is noticed, and one that does not answer as well.
func TestWatch(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			asked.Add(1)
		}
		switch {
		case r.URL.Path == "/livez" && asked.Load() == 3:
			http.Error(w, "the loop has not turned", http.StatusServiceUnavailable)
		case r.URL.Path == "/livez" && asked.Load() == 5:
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/readyz" && asked.Load() > 2:
			http.Error(w, "away", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	began := time.Now()
	watch := publisher.StartWatch(t.Context(), &publisher.Program{Address: strings.TrimPrefix(server.URL, "http://")})
	err := eventually.Within(t.Context(), time.Minute, "the probes were asked seven times", func() (bool, error) {
		n, _ := watch.Live()
		return n >= 7, nil
	})
	watch.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if _, failed := watch.Live(); len(failed) != 2 || !strings.Contains(failed[0], "the loop has not turned") {
		t.Errorf("livez failed: %q", failed)
	}
	if ready, not := watch.Ready(began, time.Now()); ready != 2 || not < 5 {
		t.Errorf("readyz: %d ready, %d not", ready, not)
	}
	if since, not := watch.NotReadySince(began); !not || since.Before(began) {
		t.Errorf("not ready since %s, %t", since, not)
	}
	if _, not := watch.NotReadySince(time.Now()); not {
		t.Error("it was not ready after it was asked last")
	}
	if ready, not := watch.Ready(began.Add(-time.Hour), began); ready+not != 0 {
		t.Errorf("readyz before it was asked: %d ready, %d not", ready, not)
	}
}

// A good report has no problem, and each that is not good has its own.
func TestTheReportChecks(t *testing.T) {
	t.Parallel()
	for want, harm := range map[string]func(*publisher.Half){
		"": func(*publisher.Half) {},
		"the process did not survive: it ended by itself": func(h *publisher.Half) { h.SurvivedAsOne = false },
		"2 events are dead":                   func(h *publisher.Half) { h.Dead = 2 },
		"1 events were charged":               func(h *publisher.Half) { h.Charged = 1 },
		"it did not drain":                    func(h *publisher.Half) { h.Drained = false },
		"it took 1m1s to drain, at most 1m0s": func(h *publisher.Half) { h.DrainTime = 61 * time.Second },
		"it took 3m21s to drain, at most 3m20s": func(h *publisher.Half) {
			h.DrainTime, h.SteadyTime = 201*time.Second, 10*time.Second
		},
		"/livez failed 1 times, first with \"stuck\"": func(h *publisher.Half) { h.LiveFailed = []string{"stuck"} },
		"/readyz said ready 3 times in the middle":    func(h *publisher.Half) { h.ReadyInOutage = 3 },
		"/readyz was never asked":                     func(h *publisher.Half) { h.NotReady = 0 },
		"it is not ready again":                       func(h *publisher.Half) { h.ReadyAgain = false },
		"the probes were asked 1 times":               func(h *publisher.Half) { h.Probed = 1 },
		"events waited for the broker, at least 1000": func(h *publisher.Half) { h.Waiting = 999 },
		"the outage was 7s":                           func(h *publisher.Half) { h.Outage = 7 * time.Second },
		"no producer noticed":                         func(h *publisher.Half) { h.Interrupted = 0 },
		"ended with exit code 1":                      func(h *publisher.Half) { h.ExitCode = 1 },
		"the stop took 21s":                           func(h *publisher.Half) { h.Stop = 21 * time.Second },
		"it kept 1 lanes":                             func(h *publisher.Half) { h.KeptLanes = 1 },
		"500 events that nothing happened to, 501":    func(h *publisher.Half) { h.SteadyArrived = 501 },
		"events did not flow again within 3m0s":       func(h *publisher.Half) { h.Stood = 1 },
		"too little was tested: committed is 0": func(h *publisher.Half) {
			h.Verdict = check.New().Verdict(check.Floor{})
		},
	} {
		half := publisher.NewHalf("nats", publisher.Short())
		half.Verdict, half.Waiting, half.Outage, half.Drained, half.Interrupted = goodVerdict(), 1000, 8*time.Second, true, 1
		half.Steady, half.SteadyArrived, half.Probed, half.NotReady, half.ReadyAgain, half.SurvivedAsOne = 500, 500, 40,
			20, true, true
		harm(half)
		wanted(t, half.Problems(), want)
	}
}

func goodVerdict() *check.Verdict {
	c := check.New()
	id := check.ID{15: 1}
	c.Add(check.Record{
		Tx: &check.Tx{Key: "a", Events: []check.Event{{ID: id, Topic: "t", Aggregate: "a"}}, Outcome: check.OK},
	})
	c.Add(check.Record{Delivery: &check.Delivery{Index: 1, ID: id, Topic: "t"}})
	c.Add(check.Record{End: &check.End{Drained: true}})
	return c.Verdict(check.Floor{})
}
