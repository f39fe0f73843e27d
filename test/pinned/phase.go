package pinned

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
)

// Runner is a relay, ours or one with a planted bug.
type Runner interface {
	Run(ctx context.Context) error
	Stats() relay.Stats
}

// Relay makes the relay that is measured.
func Relay(config relay.Config) (Runner, error) { return relay.New(config) }

// phase is one stretch of load under one kind of pin.
type phase struct {
	name        string
	length      time.Duration
	noWatermark bool
	// after runs when the load is over and the relay still runs.
	after func(context.Context, *tape) error
}

const lanes = 64

// measure runs the load against a relay of its own.
func (r *run) measure(ctx context.Context, p phase) (_ *Phase, err error) {
	whole := r.plan.Settle + p.length
	transactions := r.plan.transactions(whole)
	r.phases++
	t := newTape(r.phases, transactions*r.plan.PerTx, transactions, r.plan.Aggregates)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	runner, stop, err := r.startRelay(ctx, cancel, p, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := r.untilLanes(ctx, runner); err != nil {
		return nil, err
	}
	bell := outbox.NewDoorbell(outbox.RingPgx(r.db.Producers, outbox.DefaultSchema))
	defer bell.Close()
	if err := r.warmUp(ctx, t, bell); err != nil {
		return nil, err
	}
	first := time.Since(t.began)
	t.began = time.Now()
	l := load{plan: r.plan, pool: r.db.Producers, bell: bell, tape: t}
	loaded := make(chan error, 1)
	go func() { loaded <- l.run(ctx) }()
	before, after, err := r.meter(ctx, p.length)
	if err = errors.Join(err, <-loaded); err != nil {
		return nil, err
	}
	ended := t.since()
	if !p.noWatermark { // the control is not expected to catch up
		if err := r.untilDelivered(ctx, t); err != nil {
			return nil, err
		}
	}
	if p.after != nil {
		if err := p.after(ctx, t); err != nil {
			return nil, err
		}
	}
	found := r.summarise(p, t, before, after, ended)
	found.First = first
	return found, context.Cause(ctx)
}

// warmUp waits until the relay has delivered a few events, one after the other: what a take-over costs is
// a figure of its own.
func (r *run) warmUp(ctx context.Context, t *tape, bell *outbox.Doorbell) error {
	for n := range int64(5) {
		err := pgx.BeginFunc(ctx, r.db.Producers, func(tx pgx.Tx) error {
			_, err := outbox.Emit(ctx, tx, moved().New(probeThing, body{Filler: filler}))
			return err
		})
		if err != nil {
			return fmt.Errorf("pinned: a probe: %w", err)
		}
		bell.Ring()
		for deadline := time.Now().Add(2 * r.plan.Drain); t.probes.Load() <= n; {
			if time.Now().After(deadline) {
				return fmt.Errorf("pinned: the relay did not deliver probe %d within %s", n, 2*r.plan.Drain)
			}
			if err := wait.For(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// startRelay runs a relay until stop is called.
func (r *run) startRelay(ctx context.Context, fail context.CancelCauseFunc, p phase, t *tape) (Runner, func() error, error) {
	registry, err := outbox.NewRegistry(moved())
	if err != nil {
		return nil, nil, err
	}
	runner, err := r.newRelay(relay.Config{
		Database: r.db.URL, Registry: registry, Publisher: relay.Func(t.publish), Name: "bench-" + p.name,
		Logger: slog.New(slog.NewTextHandler(r.say, &slog.HandlerOptions{Level: slog.LevelWarn})), NoWatermark: p.noWatermark,
	})
	if err != nil {
		return nil, nil, err
	}
	running, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		err := runner.Run(running)
		if err != nil {
			fail(fmt.Errorf("pinned: the relay: %w", err))
		}
		done <- err
	}()
	return runner, func() error {
		end()
		return <-done
	}, nil
}

// untilLanes waits until the relay holds everything.
func (r *run) untilLanes(ctx context.Context, runner Runner) error {
	for deadline := time.Now().Add(r.plan.Drain); runner.Stats().Lanes < lanes; {
		if time.Now().After(deadline) {
			return fmt.Errorf("pinned: the relay has %d of %d lanes after %s", runner.Stats().Lanes, lanes, r.plan.Drain)
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// meter reads the statistics at the beginning and the end of the measured stretch.
func (r *run) meter(ctx context.Context, length time.Duration) (before, after reads, err error) {
	if err = wait.For(ctx, r.plan.Settle); err != nil {
		return before, after, err
	}
	if before, err = r.db.reads(ctx); err != nil {
		return before, after, err
	}
	if err = wait.For(ctx, length); err != nil {
		return before, after, err
	}
	after, err = r.db.reads(ctx)
	return before, after, err
}

// untilDelivered waits until all is delivered, or for as long as the plan allows.
func (r *run) untilDelivered(ctx context.Context, t *tape) error {
	for deadline := time.Now().Add(r.plan.Drain); t.undelivered() > 0 && time.Now().Before(deadline); {
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
