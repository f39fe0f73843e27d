package retention

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/relay/retention"
	"github.com/posthaste-dev/posthaste/test/bench/steady"
)

// A Janitor deletes what is due; ours, or one with a mutant.
type Janitor interface {
	Once(ctx context.Context) (retention.Result, error)
}

// Retention makes the janitor that is measured.
func Retention(db retention.DB, config retention.Config) (Janitor, error) {
	return retention.New(db, config)
}

// run is one proof.
type run struct {
	plan    Plan
	db      *database
	load    *steady.Load
	janitor func(retention.DB, retention.Config) (Janitor, error)
	say     io.Writer
	report  *Report
}

// Run makes the proof. It says on say how far it is.
func Run(ctx context.Context, plan Plan, janitor func(retention.DB, retention.Config) (Janitor, error),
	say io.Writer,
) (_ *Report, err error) {
	r := &run{plan: plan, janitor: janitor, say: say, report: NewReport(plan)}
	began := time.Now()
	if r.db, err = newDatabase(ctx, plan); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.db.Close()) }()
	if err := r.db.fill(ctx, plan, r.sayf); err != nil {
		return nil, err
	}
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	if r.report.left, err = r.db.left(ctx); err != nil {
		return nil, err
	}
	r.report.Order, r.report.Warnings, r.report.Seconds = r.load.Inverted(), r.load.Warnings(),
		time.Since(began).Seconds()
	return r.report, nil
}

func (r *run) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.say, "proof-retention: "+format+"\n", args...) // of no consequence
}

// live measures all stretches while events flow.
func (r *run) live(ctx context.Context) error {
	// Twice the planned time, and a machine that stands still.
	longest := 4*time.Duration(r.plan.MostPairs)*(r.plan.Settle+r.plan.Length) + 10*time.Minute
	r.load = steady.New(steady.Plan{
		Rate: r.plan.Rate, PerTx: r.plan.PerTx, Workers: r.plan.Workers, Aggregates: r.plan.Aggregates, Longest: longest,
		Drain: r.plan.Drain,
	}, r.db.Outbox, "proof-retention", r.say)
	err := r.load.During(ctx, r.stretches)
	r.report.Committed, r.report.Lost = r.load.Count()
	return err
}

// stretches measures with and without retention, in turns.
func (r *run) stretches(ctx context.Context) error {
	for i := 0; i < 2*r.plan.Pairs || i%2 == 1 || i < 2*r.plan.MostPairs && r.report.undecided() != ""; i++ {
		if i%2 == 0 && i >= 2*r.plan.Pairs {
			r.sayf("one more pair, because %s", r.report.undecided())
			if err := r.db.fillMore(ctx, r.plan, i/2); err != nil {
				return err
			}
		}
		if err := wait.For(ctx, r.plan.Settle); err != nil {
			return err
		}
		s, from := Stretch{Pair: i / 2, With: with(i)}, r.load.Since()
		worked := make(chan error, 1)
		if s.With {
			go func() { worked <- r.retain(ctx, i/2) }()
		} else {
			worked <- nil
		}
		err := wait.For(ctx, r.plan.Length)
		to := r.load.Since()
		if err = errors.Join(err, <-worked); err != nil { // it may take longer than planned; that is not measured
			return err
		}
		if err := wait.For(ctx, min(r.plan.Settle, time.Second)); err != nil { // the last events of the stretch
			return err
		}
		s.Stretch = r.load.Measure(from, to)
		r.report.Stretches = append(r.report.Stretches, s)
		r.sayf("pair %d, retention %t: %.0f events/s, p50 %s, p99 %s", s.Pair+1, s.With, s.Offered, s.P50, s.P99)
	}
	return nil
}

// retain lets the rows of one pair be deleted.
func (r *run) retain(ctx context.Context, pair int) error {
	janitor, err := r.janitor(r.db.janitor, retention.Config{
		Published: r.plan.window(pair), Batch: r.plan.Batch, Pause: r.plan.Pause,
		Logger: slog.New(slog.NewTextHandler(r.say, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	if err := r.look(ctx); err != nil { // a janitor that is quick is done before the first look of the watch
		return err
	}
	began := time.Now()
	watching, enough := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- r.watch(watching) }()
	result, err := janitor.Once(ctx)
	enough()
	if err = errors.Join(err, <-watched); err != nil {
		return err
	}
	r.report.Removed += result.Published
	r.report.Batches += result.Batches
	r.report.Slowest = max(r.report.Slowest, result.Slowest)
	r.report.Rejections += len(result.Halted)
	r.report.Busy += time.Since(began)
	return nil
}

// watch looks again and again for somebody who waits for retention.
func (r *run) watch(ctx context.Context) error {
	for {
		err := r.look(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to stop
		}
		if err != nil {
			return err
		}
		if wait.For(ctx, 20*time.Millisecond) != nil {
			return nil //nolint:nilerr // it was told to stop
		}
	}
}

// look counts who waits for retention at this moment.
func (r *run) look(ctx context.Context) error {
	n, err := r.db.blockedNow(ctx)
	if err != nil {
		return err
	}
	r.report.Looks++
	r.report.Blocked += n
	return nil
}
