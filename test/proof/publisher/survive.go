package publisher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
)

// Plan is how much proof-publisher does with each broker.
type Plan struct {
	// Binary is outbox-publisher as it was built; Executable is one that can be the emulator, see [server.NewEmulator].
	Binary, Executable string
	// Folder takes histories and logs.
	Folder string
	// Rounds is how often each dependency is restarted, in order and by a crash, while Rate events per second are written.
	Rounds, Rate int
	// Outage is how long the broker is away then, and Waiting how many events must have piled up when it is back.
	Outage  time.Duration
	Waiting int
	// Drain is how long they may take, or longer on a machine that is slow: see [Half.DrainLimit]. Patience is how long
	// nothing may move when it could, as after a restart.
	Drain, Patience time.Duration
	// Environment is added to the program's.
	Environment []string
}

// Long is the whole proof.
func Long() Plan {
	return Plan{
		Rounds: 3, Rate: 300, Outage: time.Minute, Waiting: 20_000, Drain: 4 * time.Minute, Patience: eventually.Patience,
	}
}

// Short is the form for every change.
func Short() Plan {
	return Plan{
		Rounds: 1, Rate: 200, Outage: 8 * time.Second, Waiting: 1000, Drain: time.Minute, Patience: eventually.Patience,
	}
}

// stopTime is the drain time of the publisher, which is its default.
const stopTime = 20 * time.Second

// half is a run under way.
type half struct {
	*ownServers
	plan    Plan
	program *Program
	watch   *Watch
	report  *Half
	sayf    func(format string, args ...any)
}

// Survive runs the program with one broker through everything and checks what came of it.
func Survive(ctx context.Context, plan Plan, broker string, say io.Writer) (_ *Half, err error) {
	folder := filepath.Join(plan.Folder, broker)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	began := time.Now()
	h := &half{plan: plan, report: NewHalf(broker, plan), sayf: func(format string, args ...any) {
		// An error here is of no consequence.
		_, _ = fmt.Fprintf(say, "proof-publisher/%s: %5.1f s: %s\n", broker, time.Since(began).Seconds(),
			fmt.Sprintf(format, args...))
	}}
	if h.ownServers, err = newOwnServers(ctx, folder, broker, plan.Executable); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	h.program, err = StartProgram(ctx, plan.Binary, filepath.Join(folder, "outbox-publisher.log"),
		append(h.settings, plan.Environment...))
	if err != nil {
		return nil, err
	}
	defer h.program.Kill()
	h.watch = StartWatch(ctx, h.program)
	defer h.watch.Stop()
	if err := h.play(ctx); err != nil {
		return nil, fmt.Errorf("the half of %s: %w", broker, err)
	}
	h.report.Seconds = time.Since(began).Seconds()
	return h.report, nil
}

func (h *half) play(ctx context.Context) error {
	if err := h.restarts(ctx); err != nil {
		return err
	}
	if err := h.outage(ctx); err != nil {
		return err
	}
	r := h.report
	began := time.Now()
	var err error
	if r.Drained, err = h.drain(ctx, h.plan.Patience, h.program.Alive); err != nil {
		return err
	}
	r.DrainTime = time.Since(began)
	h.sayf("drained=%t after %.1f s", r.Drained, r.DrainTime.Seconds())
	if err := h.steady(ctx); err != nil {
		return err
	}
	if r.Drained { // it says so itself, by and by
		_ = eventually.Within(ctx, h.plan.Patience, "ready again", func() (bool, error) {
			status, _ := h.program.Fetch(ctx, "GET", "/readyz")
			r.ReadyAgain = status == 200
			return r.ReadyAgain || !h.program.Alive(), nil
		})
	}
	h.watch.Stop()
	r.Probed, r.LiveFailed = h.watch.Live()
	if r.SurvivedAsOne = h.program.Alive(); r.SurvivedAsOne {
		if r.Stop, err = h.program.Stop(stopTime + 10*time.Second); err != nil {
			return err
		}
	}
	<-h.program.Ended
	r.ExitCode = h.program.ExitCode()
	return h.examineAll(ctx)
}

// examineAll reads what the tables say and has the checker read all.
func (h *half) examineAll(ctx context.Context) (err error) {
	r := h.report
	if r.Charged, err = h.count(ctx, "SELECT count(*) FROM {schema}.outbox_events WHERE attempt_count > 0"); err != nil {
		return err
	}
	if r.Dead, err = h.count(ctx, "SELECT (SELECT count(*) FROM {schema}.outbox_events WHERE state = 5) + (SELECT "+
		"count(*) FROM {schema}.outbox_held WHERE kind = 4) + (SELECT count(*) FROM {schema}.outbox_dlq)"); err != nil {
		return err
	}
	if r.KeptLanes, err = h.count(ctx, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL"); err != nil {
		return err
	}
	r.Interrupted = h.producers.Interrupted()
	r.Verdict, err = h.examine(ctx, r.Drained, check.Floor{
		Committed: h.plan.Waiting, OrderedAggregates: 100,
		Faults: map[check.FaultKind]int{check.DatabaseDown: 2 * h.plan.Rounds, check.BrokerDown: 2*h.plan.Rounds + 1},
	})
	return err
}

// restarts does so to every dependency under load, in order and as in a crash.
func (h *half) restarts(ctx context.Context) error {
	ctx, enough := h.env.underLoad(ctx, h.plan.Rate)
	defer enough()
	brokerBy := func(signal os.Signal) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := h.broker.End(signal); err != nil {
				return err
			}
			return h.broker.Start(ctx)
		}
	}
	databaseBy := func(mode cluster.Mode) func(context.Context) error {
		return func(ctx context.Context) error {
			before := h.producers.Interrupted()
			if err := h.database.Stop(ctx, mode); err != nil {
				return err
			}
			err := eventually.Within(ctx, eventually.Patience, "a producer notices that the database is away",
				func() (bool, error) {
					return h.producers.Interrupted() > before, nil
				})
			return errors.Join(err, h.database.Start(ctx))
		}
	}
	for range h.plan.Rounds {
		for _, fault := range []struct {
			name   string
			kind   check.FaultKind
			inject func(context.Context) error
		}{
			{"the database is restarted", check.DatabaseDown, databaseBy(cluster.Fast)},
			{"the broker is restarted", check.BrokerDown, brokerBy(syscall.SIGTERM)},
			{"the database crashes", check.DatabaseDown, databaseBy(cluster.Immediate)},
			{"the broker is killed", check.BrokerDown, brokerBy(os.Kill)},
		} {
			if err := h.flows(ctx); err != nil {
				return err
			}
			h.sayf("%s, after %d events", fault.name, h.producers.Committed())
			if err := h.inject(ctx, fault.kind, fault.inject); err != nil {
				return err
			}
		}
	}
	return h.flows(ctx)
}

// flowing is how many arrivals show that events flow again.
const flowing = 100

// flows waits until events flow. A program that does not go on is found later, by the checker, and is waited for once.
func (h *half) flows(ctx context.Context) error {
	if h.report.Stood > 0 {
		return nil
	}
	before, err := h.arrivals(ctx)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(h.plan.Patience); time.Now().Before(deadline) && h.program.Alive(); {
		now, err := h.arrivals(ctx)
		if err != nil || now >= before+flowing {
			return err
		}
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	h.report.Stood++
	return nil
}

// arrivals asks until the broker answers.
func (h *half) arrivals(ctx context.Context) (n uint64, err error) {
	err = eventually.Within(ctx, eventually.Patience, "the broker tells what has arrived", func() (bool, error) {
		asking, cancel := context.WithTimeout(ctx, 10*time.Second) // one that hangs is asked again
		defer cancel()
		n, err = h.torture.Arrivals(asking)
		return err == nil, err
	})
	return n, err
}

// inject does one fault and writes it down for the checker, with the arrivals that it lies between.
func (h *half) inject(ctx context.Context, kind check.FaultKind, do func(context.Context) error) error {
	before, err := h.arrivals(ctx)
	if err != nil {
		return err
	}
	fault := check.Fault{Kind: kind, From: time.Now().UnixMicro(), First: before + 1}
	if err := do(ctx); err != nil {
		return err
	}
	if kind == check.DatabaseDown {
		if err := h.noticed(ctx, fault.From); err != nil {
			return err
		}
	}
	after, err := h.arrivals(ctx)
	if err != nil {
		return err
	}
	fault.To = time.Now().UnixMicro()
	if h.report.Broker == chaos.NATS { // of Pub/Sub we see what was delivered, which may be much later than it was sent
		fault.Last = after + 1
	}
	return h.faults.Add(check.Record{Fault: &fault})
}

// noticed waits until the publisher has taken its lanes anew, as it does when its database was restarted. What it sends
// before that it cannot settle any more, and sends again. One that never does is found later, by the checker.
func (h *half) noticed(ctx context.Context, since int64) error {
	if h.report.Stood > 0 {
		return nil
	}
	for deadline := time.Now().Add(h.plan.Patience); time.Now().Before(deadline) && h.program.Alive(); {
		old, err := h.count(ctx, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NULL OR acquired_at < "+
			"to_timestamp($1::float8 / 1000000)", since)
		if err != nil || old == 0 {
			return err
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// steadyEvents are written when everything is well again.
const steadyEvents = 500

// steady writes events that nothing happens to: each of them must be sent exactly once.
func (h *half) steady(ctx context.Context) error {
	r := h.report
	if !r.Drained {
		return nil
	}
	published, err := h.count(ctx, "SELECT count(*) FROM {schema}.outbox_events WHERE state = 6")
	if err != nil {
		return err
	}
	newest, err := h.count(ctx, "SELECT coalesce(max(seq), 0) FROM {schema}.outbox_events")
	if err != nil {
		return err
	}
	before, err := h.quiet(ctx, uint64(published), h.arrivals)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := h.producers.Write(ctx, steadyEvents, 0); err != nil {
		return err
	}
	if r.Drained, err = h.drain(ctx, h.plan.Patience, h.program.Alive); err != nil || !r.Drained {
		return err
	}
	r.SteadyTime = time.Since(began)
	now, err := h.count(ctx, "SELECT count(*) FROM {schema}.outbox_events WHERE state = 6")
	if err != nil {
		return err
	}
	r.Steady = now - published
	r.SteadyArrived, err = h.steadyArrived(ctx, newest, before)
	return err
}

// steadyArrived counts the messages of the events that are newer than this one. Of Pub/Sub they are known by their
// events: a copy from before may be delivered much later, on a machine that has little time.
func (h *half) steadyArrived(ctx context.Context, newest int, before uint64) (int, error) {
	rows, err := h.torture.Pool.Query(ctx,
		h.torture.SQL("SELECT id::text FROM {schema}.outbox_events WHERE seq > $1"), newest)
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, err
	}
	events := map[outbox.ID]bool{}
	for _, text := range ids {
		id, err := outbox.ParseID(text)
		if err != nil {
			return 0, err
		}
		events[id] = true
	}
	if _, known := h.torture.ArrivalsOf(events); known {
		n, err := h.quiet(ctx, uint64(len(events)), func(context.Context) (uint64, error) {
			n, _ := h.torture.ArrivalsOf(events)
			return n, nil
		})
		return int(n), err
	}
	after, err := h.quiet(ctx, before+uint64(len(events)), h.arrivals)
	return int(after - before), err
}

// quiet waits until at least so many messages have arrived and no more come, for as long as the patience lasts.
// JetStream has what it has acknowledged, so what is not there then never comes; of Pub/Sub we see what was delivered.
func (h *half) quiet(ctx context.Context, least uint64, count func(context.Context) (uint64, error)) (
	last uint64, err error,
) {
	still := 0
	if h.report.Broker == chaos.NATS {
		least = 0
	}
	for deadline := time.Now().Add(h.plan.Patience); time.Now().Before(deadline); {
		now, err := count(ctx)
		if err != nil {
			return 0, err
		}
		if still++; now != last {
			still = 0
		}
		if last = now; last >= least && still >= 10 {
			return last, nil
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// outage takes the broker away while events pile up.
func (h *half) outage(ctx context.Context) error {
	return h.inject(ctx, check.BrokerDown, func(ctx context.Context) error {
		r, began := h.report, time.Now()
		if err := h.broker.End(os.Kill); err != nil {
			return err
		}
		h.sayf("the broker goes away for %s", h.plan.Outage)
		if err := h.producers.Write(ctx, h.plan.Waiting+h.plan.Waiting/20, h.plan.Outage*3/4); err != nil {
			return err
		}
		if err := wait.For(ctx, time.Until(began.Add(h.plan.Outage))); err != nil {
			return err
		}
		// Not ready as soon as the outage was noticed, which takes longer on a busy machine: then it is longer, too.
		err := eventually.Within(ctx, h.plan.Patience, "the probes tell of the outage", func() (bool, error) {
			since, not := h.watch.NotReadySince(began)
			return not && since.Sub(began) < time.Since(began)/2 || !h.program.Alive(), nil
		})
		if err != nil && ctx.Err() != nil {
			return err
		}
		if r.Waiting, err = h.open(ctx); err != nil {
			return err
		}
		r.Outage = time.Since(began)
		r.ReadyInOutage, r.NotReady = h.watch.Ready(began.Add(r.Outage/2), began.Add(r.Outage))
		h.sayf("the broker comes back after %.0f s; %d events wait", r.Outage.Seconds(), r.Waiting)
		return h.broker.Start(ctx)
	})
}
