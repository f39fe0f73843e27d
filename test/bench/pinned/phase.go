package pinned

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/measure"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// Runner is a relay, ours or a mutant.
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

// minReads must have been counted in a stretch, by the least.
const minReads = 3

// capacity is how many events per second producers and a relay can move when they do nothing else.
func (r *run) capacity(ctx context.Context) (perSecond float64, err error) {
	r.sayf("as fast as it goes")
	transactions := r.plan.transactions(2 * time.Second)
	t := r.newTape(transactions)
	err = r.relaying(ctx, phase{name: "capacity"}, t, func(ctx context.Context, l load) error {
		l.plan.Rate = math.MaxInt32 // everything is due at once
		if err := l.run(ctx); err != nil {
			return err
		}
		if err := r.untilDelivered(ctx, t); err != nil {
			return err
		}
		perSecond = float64(transactions*r.plan.PerTx) / t.lastAck().Seconds()
		return nil
	})
	return perSecond, err
}

// measure runs the load against a relay of its own.
func (r *run) measure(ctx context.Context, p phase) (found *Phase, err error) {
	t := r.newTape(r.plan.transactions(r.plan.Settle + p.length))
	made := time.Now()
	err = r.relaying(ctx, p, t, func(ctx context.Context, l load) error {
		first := t.began.Sub(made)
		loaded := make(chan error, 1)
		go func() { loaded <- l.run(ctx) }()
		before, after, err := r.meter(ctx, p)
		if err = errors.Join(err, <-loaded); err != nil {
			return err
		}
		ended := t.since()
		if !p.noWatermark { // the control is not expected to catch up
			if err := r.untilDelivered(ctx, t); err != nil {
				return err
			}
		}
		if p.after != nil {
			if err := p.after(ctx, t); err != nil {
				return err
			}
		}
		found = r.summarise(p, t, before, after, ended)
		found.First = first
		return nil
	})
	return found, err
}

func (r *run) newTape(transactions int) *tape {
	r.phases++
	return newTape(r.phases, transactions*r.plan.PerTx, transactions, r.plan.Aggregates)
}

// relaying does something with a load while a relay runs that has delivered its first events. The tape begins then.
func (r *run) relaying(ctx context.Context, p phase, t *tape, do func(context.Context, load) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	runner, stop, err := r.startRelay(ctx, cancel, p, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := r.untilLanes(ctx, runner); err != nil {
		return err
	}
	bell := outbox.NewDoorbell(outbox.RingPgx(r.db.Producers, outbox.DefaultSchema))
	defer bell.Close()
	if err := r.warmUp(ctx, t, bell); err != nil {
		return err
	}
	t.began = time.Now()
	if err := do(ctx, load{plan: r.plan, pool: r.db.Producers, bell: bell, tape: t}); err != nil {
		return err
	}
	return context.Cause(ctx)
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
		for deadline := time.Now().Add(hung); t.probes.Load() <= n; {
			if time.Now().After(deadline) {
				return fmt.Errorf("pinned: the relay did not deliver probe %d within %s", n, hung)
			}
			if err := wait.For(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// startRelay runs a relay until stop is called.
func (r *run) startRelay(ctx context.Context, fail context.CancelCauseFunc, p phase,
	t *tape,
) (Runner, func() error, error) {
	registry, err := outbox.NewRegistry(moved())
	if err != nil {
		return nil, nil, err
	}
	runner, err := r.newRelay(relay.Config{
		Database: r.db.URL, Registry: registry, Publisher: publish.PublisherFunc(t.publish), Name: "bench-" + p.name,
		Logger: slog.New(slog.NewTextHandler(r.say, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, nil, err
	}
	running, end := context.WithCancel(measure.With(ctx, measure.Control{NoWatermark: p.noWatermark}))
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
	for deadline := time.Now().Add(hung); runner.Stats().Lanes < lanes; {
		if time.Now().After(deadline) {
			return fmt.Errorf("pinned: the relay has %d of %d lanes after %s", runner.Stats().Lanes, lanes, hung)
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// meter reads the statistics at the beginning and the end of the measured stretch. Where enough reads take longer than
// that, it waits for them: the relay goes on reading when the load is over.
func (r *run) meter(ctx context.Context, p phase) (before, after reads, err error) {
	if err = wait.For(ctx, r.plan.Settle); err != nil {
		return before, after, err
	}
	if before, err = r.db.reads(ctx); err != nil {
		return before, after, err
	}
	if err = wait.For(ctx, p.length); err != nil {
		return before, after, err
	}
	for deadline := time.Now().Add(r.plan.Drain); ; {
		after, err = r.db.reads(ctx)
		if err != nil || after.calls-before.calls >= minReads || time.Now().After(deadline) {
			return before, after, err
		}
		if err = wait.For(ctx, 50*time.Millisecond); err != nil {
			return before, after, err
		}
	}
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
