package growth

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

//go:embed sql/*.sql
var files embed.FS

// Runner is a relay, or what stands in for one.
type Runner interface {
	Run(ctx context.Context) error
}

// Relay is the one that is measured.
func Relay(config relay.Config) (Runner, error) { return relay.New(config) }

// run is one run of the benchmark.
type run struct {
	plan     Plan
	newRelay func(relay.Config) (Runner, error)
	say      io.Writer
	began    time.Time
}

// Run makes each state in both sizes, the small one first, and an empty outbox before and after.
func Run(ctx context.Context, plan Plan, newRelay func(relay.Config) (Runner, error), say io.Writer,
) (*Report, error) {
	r := &run{plan: plan, newRelay: newRelay, say: say, began: time.Now()}
	report := &Report{Plan: plan}
	empty := func() error {
		found, err := r.measure(ctx, state{name: "empty", counted: "bound.seq + l.numbers"}, 0)
		report.Empty = append(report.Empty, found)
		return err
	}
	if err := empty(); err != nil {
		return nil, err
	}
	for _, s := range states {
		large := s.rows / plan.Scale
		if s.few {
			large = s.rows
		}
		small, err := r.measure(ctx, s, large/10)
		if err != nil {
			return nil, err
		}
		grown, err := r.measure(ctx, s, large)
		if err != nil {
			return nil, err
		}
		report.Grown = append(report.Grown, Pair{Name: s.name, LineBytes: s.lineBytes, Small: small, Large: grown})
	}
	if err := empty(); err != nil {
		return nil, err
	}
	report.Took = time.Since(r.began)
	return report, nil
}

func (r *run) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.say, "%4.0f s  "+format+"\n", append([]any{time.Since(r.began).Seconds()}, args...)...)
}

// measure makes a state of so many rows and lets a relay come upon it.
func (r *run) measure(ctx context.Context, s state, rows int) (found Found, err error) {
	db, err := bench.NewOutbox(ctx, r.plan.URL, 4)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	found.Name, found.Rows = s.name, rows
	if s.open {
		writer, err := db.Producers.Begin(ctx)
		if err != nil {
			return found, fmt.Errorf("growth: open: %w", err)
		}
		defer func() { _ = writer.Rollback(context.WithoutCancel(ctx)) }()
		if _, err := outbox.Emit(ctx, writer, canary.New("of the open one", body{})); err != nil {
			return found, fmt.Errorf("growth: open: %w", err)
		}
	}
	if err := r.fill(ctx, db, s, rows); err != nil {
		return found, err
	}
	watch := &watch{state: s, delivered: make(chan outbox.ID, 1<<16)}
	before := heap()
	stop, err := r.start(ctx, db, watch)
	if err != nil {
		return found, err
	}
	if err := errors.Join(r.follow(ctx, db, watch, &found, before), stop()); err != nil {
		return found, fmt.Errorf("growth: %s, %d rows: %w; %s", s.name, rows, err, watch.trouble())
	}
	// What it has told the next owner of each lane.
	if err := db.Control.QueryRow(ctx, "SELECT coalesce(sum(cardinality(needs)), 0) FROM public.outbox_lanes").
		Scan(&found.Needs); err != nil {
		return found, fmt.Errorf("growth: needs: %w", err)
	}
	return found, nil
}

// fill makes the rows, and one event in every lane behind them.
func (r *run) fill(ctx context.Context, db *bench.Outbox, s state, rows int) error {
	r.sayf("%s: %d rows are made", s.name, rows)
	if s.fill != "" {
		text, err := files.ReadFile("sql/" + s.fill + ".sql")
		if err != nil {
			return fmt.Errorf("growth: %w", err)
		}
		if _, err := db.Control.Exec(ctx, string(text), rows); err != nil {
			return fmt.Errorf("growth: fill %s: %w", s.name, err)
		}
	}
	return db.Exec(ctx, "ANALYZE public.outbox_events", "ANALYZE public.outbox_held")
}

// start runs a relay until stop is called.
func (r *run) start(ctx context.Context, db *bench.Outbox, watch *watch) (stop func() error, err error) {
	contracts := []outbox.AnyContract{canary, slow}
	for i := range types {
		contracts = append(contracts, outbox.Define[body](outbox.Contract{
			Type: fmt.Sprintf("bulk_%d", i), Aggregate: "thing", Topic: bulkTopic,
		}))
	}
	registry, err := outbox.NewRegistry(contracts...)
	if err != nil {
		return nil, fmt.Errorf("growth: %w", err)
	}
	runner, err := r.newRelay(relay.Config{
		Database: db.URL, Registry: registry, Publisher: publish.PublisherFunc(watch.publish), Observe: watch.observe,
		Name: "bench-growth", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("growth: %w", err)
	}
	if err := db.CountPages(ctx); err != nil {
		return nil, err
	}
	running, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	watch.began = time.Now()
	go func() { done <- runner.Run(running) }()
	return func() error {
		end()
		return <-done
	}, nil
}

// follow waits until all lanes carry events and the state was gone through, and takes the figures.
func (r *run) follow(ctx context.Context, db *bench.Outbox, watch *watch, found *Found, before uint64) error {
	if err := watch.carry(ctx, db, inAllLanes()); err != nil {
		return err
	}
	found.Opened = time.Since(watch.began)
	if err := watch.until(ctx, func() (bool, error) { return watch.through(ctx, db, found.Rows) }); err != nil {
		return err
	}
	found.Through = time.Since(watch.began)
	pages, err := db.PagesOf(ctx, watch.state.counted)
	if err != nil {
		return err
	}
	found.Pages = float64(pages.Pages) / float64(max(found.Rows, 1))
	for range r.plan.Waits {
		began := time.Now()
		if err := watch.carry(ctx, db, []string{"waiting"}); err != nil {
			return err
		}
		found.Waits = append(found.Waits, time.Since(began))
	}
	if after := heap(); after > before {
		found.Bytes = after - before
	}
	found.Failed, found.Alarms = watch.failed.Load(), watch.alarms.Load()
	r.sayf("%s: %d rows, %d failed, opened after %.1f s, through after %.1f s", found.Name, found.Rows, found.Failed,
		found.Opened.Seconds(), found.Through.Seconds())
	return nil
}

// heap is what the process holds.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// inAllLanes are aggregates of which one at least is in every lane.
func inAllLanes() (ids []string) {
	for i := range 1000 {
		ids = append(ids, fmt.Sprintf("canary-%d", i))
	}
	return ids
}

// until asks again and again, until the answer is yes.
func (w *watch) until(ctx context.Context, done func() (bool, error)) error {
	for deadline := time.Now().Add(hung); ; {
		yes, err := done()
		if yes || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nothing more after %s", hung)
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
