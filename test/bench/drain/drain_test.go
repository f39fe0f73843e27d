package drain_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// TestMain is a relay of a fleet as well: a fleet starts its own program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "relay" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		member, err := drain.ParseMember(os.Args[2:])
		if err == nil {
			err = member.Run(ctx)
		}
		stop()
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(goroutines.Run(m))
}

func env(t *testing.T) (*drain.Env, drain.Template) {
	t.Helper()
	db, err := bench.NewDatabase(t.Context(), services.Postgres18())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := drain.NewEnv(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	template, err := w.Template(t.Context(), "test", 2500, 1.1)
	if err != nil {
		t.Fatal(err)
	}
	if template.Hottest < 100 {
		t.Errorf("the hottest aggregate has %d of 2,500 events", template.Hottest)
	}
	return w, template
}

func TestLoopsPublishEveryEventOnce(t *testing.T) {
	t.Parallel()
	w, template := env(t)
	for _, d := range []drain.Drainer{
		drain.ToNowhere("minimal", drain.MinimalTable, drain.Minimal{Env: w, Batch: 1000}),
		drain.ToNowhere("bare", drain.OutboxTable, drain.Bare{Env: w, Batch: 1000}),
		drain.ToNowhere("apart", drain.OutboxTable, drain.Bare{Env: w, Batch: 1000, Apart: true}),
		drain.ToNowhere("row lease", drain.LeaseTable, drain.RowLease{Env: w, Batch: 1000}),
	} {
		turn, err := w.Count(t.Context(), template, d)
		if err != nil {
			t.Fatal(err)
		}
		// Two or three batches, and the connections. Only our table leaves room on its pages.
		if c := turn.Counts; c.WAL < 50 || c.Read <= 0 || c.Settle < 1 || c.RoundTrips < 2 || c.RoundTrips > 10 ||
			(c.HOT > 0.99) != (d.Table == drain.OutboxTable) {
			t.Errorf("%s: %+v", d.Name, *c)
		}
		if turn.Transactions != 2500 || turn.Elapsed <= 0 || turn.ServerCPU <= 0 || turn.ClientCPU <= 0 ||
			turn.Connections < 1 {
			t.Errorf("%s: %+v", d.Name, turn)
		}
	}
}

func TestRelayPublishesEveryEventOnce(t *testing.T) {
	t.Parallel()
	w, template := env(t)
	registry, err := drain.Registry(drain.Topic, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []drain.Relay{{Env: w, Registry: registry}, {Env: w, Registry: registry, NoContractCheck: true}} {
		turn, err := w.Measure(t.Context(), template, drain.RelayToNowhere("relay", r))
		if err != nil {
			t.Fatal(err)
		}
		if turn.Transactions != 2500 || turn.Elapsed <= 0 || turn.ServerCPU <= 0 || turn.ClientCPU <= 0 {
			t.Errorf("%+v", turn)
		}
	}
}

// A fleet that loses a relay loses no event, and its lanes find other owners.
func TestFleetSurvivesAKill(t *testing.T) {
	t.Parallel()
	w, template := env(t)
	fleet := drain.Fleet{
		Env: w, Template: template, Relays: 2, Delay: time.Millisecond, Lease: 3 * time.Second, Kill: true,
		Folder: t.TempDir(),
	}
	turn, err := fleet.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := turn.Verdict
	if v.Events != 2500 || v.Lost != 0 || v.Disorder != 0 || v.Strange != 0 || len(turn.Shares) != 2 ||
		turn.Takeover <= 0 || turn.Connections < 2 {
		t.Errorf("%+v", turn)
	}
}

// A fleet that is offered events at a rate gets them at that rate.
func TestFleetIsOfferedEvents(t *testing.T) {
	t.Parallel()
	w, template := env(t)
	const rate = 4000
	fleet := drain.Fleet{
		Env: w, Template: template, Relays: 1, Rate: rate, Lease: 30 * time.Second, Folder: t.TempDir(),
	}
	turn, err := fleet.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	least := time.Duration(turn.Transactions-2*rate/50) * time.Second / rate // the first and the last part take no time
	if v := turn.Verdict; v.Events != 2500 || v.Lost != 0 || v.Disorder != 0 || turn.Elapsed < least {
		t.Errorf("%+v, want %s at least", turn, least)
	}
}

// A drainer that does not do its work has no figure.
func TestMeasureBelievesNobody(t *testing.T) {
	t.Parallel()
	w, template := env(t)
	good := drain.ToNowhere("bare", drain.OutboxTable, drain.Bare{Env: w, Batch: 1000})
	forgetful := good
	forgetful.Drain = func(ctx context.Context, _ *drain.Ledger, settled func() error) error {
		return good.Drain(ctx, drain.NewLedger(template.Events), settled)
	}
	idle := good
	idle.Drain = func(_ context.Context, ledger *drain.Ledger, settled func() error) error {
		ledger.Take(1, "account-00000001")
		return settled()
	}
	for want, d := range map[string]drain.Drainer{"lost 2500": forgetful, "0 of them published": idle} {
		if _, err := w.Measure(t.Context(), template, d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
	broken := errors.New("broken")
	failing := good
	failing.Broker = func(context.Context, int) (func(context.Context) error, error) {
		return func(context.Context) error { return broken }, nil
	}
	if _, err := w.Measure(t.Context(), template, failing); !errors.Is(err, broken) {
		t.Errorf("%v, want the broker's", err)
	}
}

func TestLaneWatchSeesWhoIsFree(t *testing.T) {
	t.Parallel()
	w, _ := env(t)
	if err := w.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := func(statement string, args ...any) {
		t.Helper()
		_, err := w.DB.Control.Exec(t.Context(), strings.ReplaceAll(statement, "{schema}", "public"), args...)
		if err != nil {
			t.Fatal(err)
		}
	}
	id := outbox.NewID().String()
	sleep := func(seconds string) {
		t.Helper()
		if err := w.DB.Exec(t.Context(), "SELECT pg_sleep("+seconds+")"); err != nil {
			t.Fatal(err)
		}
	}
	watch, err := drain.WatchLanes(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	until := func(free int) {
		t.Helper()
		for watch.Free() != free {
			sleep("0.01")
		}
	}
	until(64)
	sleep("0.5") // nobody has had them yet, so this does not count
	run(leases.Join, id, "holder", "1 minute")
	run(leases.Hold, id)
	until(0)
	began := time.Now()
	run(leases.Expire, "holder") // expired is free as well
	until(64)
	sleep("0.3")
	run("UPDATE {schema}.outbox_beats SET until = clock_timestamp() + interval '1 minute'")
	until(0)
	most := time.Since(began)
	longest, err := watch.Stop(t.Context())
	if err != nil || longest < 300*time.Millisecond || longest > most {
		t.Errorf("%s without an owner, %v, want 300 ms to %s", longest, err, most)
	}
}
