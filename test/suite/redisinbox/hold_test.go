package redisinbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// extended is a hold whose extensions a test waits for, which come every third of it, or whose end. It does not end
// where the machine stands still for some seconds.
var extended = redisinbox.Config{Hold: 6 * time.Second, Keep: 10 * time.Minute}

// warm has a client connect, and Redis know the scripts: with a hold that has time for that.
func warm(t *testing.T, client *redis.Client) {
	t.Helper()
	if _, err := newGuard(t, client, long).Do(t.Context(), "warm", outbox.NewID(), fail); !errors.Is(err, errFailed) {
		t.Fatal(err)
	}
}

// waitLost waits until a handler's context ends because its hold is lost.
func waitLost(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(eventually.Patience):
		return fmt.Errorf("the handler's context has not ended within %s", eventually.Patience)
	}
	if _, lost := errors.AsType[*redisinbox.LostError](context.Cause(ctx)); !lost {
		return context.Cause(ctx)
	}
	return nil
}

func TestAHoldIsExtendedWhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	s := newEnv(t, extended)
	warm(t, s.client)
	already, err := s.do(t.Context(), func(ctx context.Context) error {
		s.wantExtended(ctx, t)
		return ctx.Err()
	})
	wantHandled(t, already, err)
}

// wantExtended waits until what is left of the hold has grown, twice, or ctx has ended.
func (s env) wantExtended(ctx context.Context, t *testing.T) {
	t.Helper()
	for range 2 {
		least := extended.Hold
		if err := eventually.Works(ctx, func() error {
			left, err := s.client.PTTL(t.Context(), s.key).Result()
			switch {
			case err != nil:
				return err
			case left > least+extended.Hold/6:
				return nil
			}
			least = min(least, left)
			return errors.New("the hold was not extended")
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestAHandlerIsCancelledWhenAnotherHasTheEvent(t *testing.T) {
	t.Parallel()
	s := newEnv(t, extended)
	warm(t, s.client)
	_, err := s.do(t.Context(), func(ctx context.Context) error {
		s.steal(t)
		if err := waitLost(ctx); err != nil {
			t.Error(err)
		}
		return ctx.Err()
	})
	wantLost(t, err, false)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's error is missing: %v", err)
	}
	s.wantMark(t, "held:another")
}

// While Redis is silent nobody knows whether the event is still held. When it may not be, the handler is cancelled,
// though Redis has not said so.
func TestAHandlerIsCancelledWhenRedisIsSilentForAHold(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := connect(t, server.address)
	warm(t, client)
	guard := newGuard(t, client, extended)
	s := newEnv(t, extended)
	_, err := guard.Do(t.Context(), consumer, s.id, func(ctx context.Context) error {
		server.pause(t)
		defer server.resume(t)
		if err := waitLost(ctx); err != nil {
			t.Error(err)
		}
		return ctx.Err()
	})
	wantLost(t, err, false)
	deliver(t, guard, s.id, succeed)
}

// slowly lets a server stand still from a question until a hold has passed.
type slowly struct {
	hook

	t      *testing.T
	server *server
	hold   time.Duration
}

// ProcessHook stands before every command.
func (s slowly) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.server.pause(s.t)
		answered := make(chan struct{})
		var resumed sync.WaitGroup
		resumed.Go(func() {
			select {
			case <-time.After(2 * s.hold):
			case <-answered: // by nobody: there was an error
			}
			s.server.resume(s.t)
		})
		defer resumed.Wait()
		defer close(answered)
		return next(context.WithoutCancel(ctx), cmd) // on a busy machine the hold may be over before the question is sent
	}
}

// An answer that comes after the hold may have ended is no hold.
func TestAHoldThatWasAnsweredTooLateIsLost(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	id := outbox.NewID()
	patient := options(server.address)
	patient.ContextTimeoutEnabled = false // it waits for the answer longer than the hold lasts
	client := redis.NewClient(patient)
	t.Cleanup(func() { _ = client.Close() })
	config := redisinbox.Config{Hold: 100 * time.Millisecond, Keep: 10 * time.Minute}
	guard := newGuard(t, client, config)
	warm(t, client)
	client.AddHook(slowly{t: t, server: server, hold: config.Hold})
	_, err := guard.Do(t.Context(), consumer, id, func(ctx context.Context) error {
		if err := waitLost(ctx); err != nil {
			t.Error(err)
		}
		return ctx.Err()
	})
	wantLost(t, err, false)
	deliver(t, newGuard(t, connect(t, server.address), long), id, succeed)
}

// The hold is kept by handlers that take their time after shutdown has cancelled them.
func TestACancelledHandlerHoldsUntilItReturns(t *testing.T) {
	t.Parallel()
	s := newEnv(t, extended)
	warm(t, s.client)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	already, err := s.do(ctx, func(context.Context) error {
		cancel()
		s.wantExtended(t.Context(), t)
		return nil
	})
	wantHandled(t, already, err)
}
