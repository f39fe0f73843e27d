package steady

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// During lets events flow while work is at work, and then waits until all have arrived.
func (l *Load) During(ctx context.Context, work func(context.Context) error) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	l.bell = outbox.NewDoorbell(outbox.RingPgx(l.db.Producers, outbox.DefaultSchema))
	defer l.bell.Close()
	stopRelay, err := l.startRelay(ctx, fail)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopRelay()) }()
	if err := l.warmUp(ctx); err != nil {
		return err
	}
	l.began = time.Now()
	stop, loaded := make(chan struct{}), make(chan error, 1)
	go func() {
		err := l.run(ctx, stop)
		if err != nil {
			fail(err)
		}
		loaded <- err
	}()
	err = work(ctx)
	close(stop)
	if err = errors.Join(err, <-loaded); err != nil {
		return err
	}
	for deadline := time.Now().Add(l.plan.Drain); ; {
		if _, missing := l.Count(); missing == 0 || time.Now().After(deadline) {
			return context.Cause(ctx)
		}
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// startRelay runs a relay until stop is called.
func (l *Load) startRelay(ctx context.Context, fail context.CancelCauseFunc) (stop func() error, err error) {
	registry, err := outbox.NewRegistry(moved())
	if err != nil {
		return nil, err
	}
	made, err := relay.New(relay.Config{
		Database: l.db.URL, Registry: registry, Publisher: publish.PublisherFunc(l.publish), Name: l.name,
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(l.say, l.logged), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		err := made.Run(running)
		if err != nil {
			fail(fmt.Errorf("steady: the relay: %w", err))
		}
		done <- err
	}()
	return func() error {
		end()
		return <-done
	}, nil
}

// warmUp waits until the relay has delivered a few events, one after the other.
func (l *Load) warmUp(ctx context.Context) error {
	for n := range int64(5) {
		err := pgx.BeginFunc(ctx, l.db.Producers, func(tx pgx.Tx) error {
			_, err := outbox.Emit(ctx, tx, moved().New(probe, body{Filler: filler}))
			return err
		})
		if err != nil {
			return fmt.Errorf("steady: a probe: %w", err)
		}
		l.bell.Ring()
		for deadline := time.Now().Add(l.plan.Drain); l.probes.Load() <= n; {
			if time.Now().After(deadline) {
				return fmt.Errorf("steady: the relay did not deliver probe %d within %s", n, l.plan.Drain)
			}
			if err := wait.For(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// logs count what the relay warned of.
type logs struct{ server.Output }

func (l *logs) lines() int { return strings.Count(l.String(), "\n") }
