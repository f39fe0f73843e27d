package redisinbox

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	loop "github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

// once has a guard's wrap run a handler for an event.
func once(ctx context.Context, guard *redisinbox.Guard, event *loop.Event, handler func(context.Context) error) error {
	return guard.Once(consumer, func(ctx context.Context, _ *loop.Event) error { return handler(ctx) })(ctx, event)
}

// wantDelay wants a delay, so short that the message does not wait for the end of a hold whose handler may end sooner.
func wantDelay(t *testing.T, err error) {
	t.Helper()
	var delay *loop.DelayError
	if !errors.As(err, &delay) || delay.After > time.Second || delay.After <= 0 {
		t.Fatalf("got %#v, want a delay of at most a second", err)
	}
}

func TestOnceHandlesOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	event := &loop.Event{ID: s.id}
	for range 2 {
		if err := once(t.Context(), s.guard, event, fail); !errors.Is(err, errFailed) {
			t.Fatalf("got %v, want the handler's error", err)
		}
		var poison *loop.PoisonError
		if err := once(t.Context(), s.guard, event, func(context.Context) error {
			return loop.Poison(errFailed)
		}); !errors.As(err, &poison) {
			t.Fatalf("got %v, want the handler's verdict", err)
		}
	}
	if err := once(t.Context(), s.guard, event, succeed); err != nil {
		t.Fatal(err)
	}
	s.wantMark(t, "done:")
	if err := once(t.Context(), s.guard, event, unwanted(t)); !errors.Is(err, loop.ErrDuplicate) {
		t.Errorf("a copy: got %v", err)
	}
	if err := once(t.Context(), s.guard, &loop.Event{ID: s.id, TenantID: "another"}, succeed); err != nil {
		t.Errorf("another tenant's event of the same id: got %v", err)
	}
}

// A handler that finds the event in a memory of its own has handled it: the guard learns that.
func TestOnceLearnsOfADuplicate(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	event := &loop.Event{ID: s.id}
	for _, handler := range []func(context.Context) error{
		func(context.Context) error { return loop.ErrDuplicate }, unwanted(t),
	} {
		if err := once(t.Context(), s.guard, event, handler); !errors.Is(err, loop.ErrDuplicate) {
			t.Errorf("got %v, want a duplicate", err)
		}
		s.wantMark(t, "done:")
	}
}

// newLoop makes a consumer whose handlers are guarded and whose first failure would be the last.
func newLoop(t *testing.T, guard *redisinbox.Guard, observe func(loop.Observation),
	handler func(context.Context) error,
) *loop.Consumer {
	t.Helper()
	c, err := loop.New(loop.Config{
		Name: consumer, MaxAttempts: 1, Middleware: []loop.Middleware{guard.Once}, Logger: slog.New(slog.DiscardHandler),
		Observe: func(_ context.Context, observation loop.Observation) { observe(observation) },
	}, loop.OnType("x.happened", func(ctx context.Context, _ *loop.Event) error { return handler(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func process(t *testing.T, c *loop.Consumer, id outbox.ID) loop.Outcome {
	t.Helper()
	return c.Process(t.Context(), map[string]string{"event_id": id.String(), "event_type": "x.happened"}, nil, 1).Outcome
}

// A copy that comes while the first is handled is kept until that has ended, not acknowledged and not blamed (fault
// I3).
func TestOnceKeepsACopyOfAHeldEvent(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	release := s.hold(t)
	delays := 0
	c := newLoop(t, s.guard, func(observation loop.Observation) {
		if observation.Outcome == loop.Delayed {
			wantDelay(t, observation.Err)
			delays++
			release()
		}
	}, unwanted(t))
	if got := process(t, c, s.id); got != loop.Duplicate || delays != 1 {
		t.Errorf("the copy is %s after %d delays", got, delays)
	}
}

// While Redis is away a message is kept, however many attempts there were, and handled when it is back (fault I8).
func TestOnceWaitsForRedis(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	guard := newGuard(t, connect(t, server.address), long)
	delays, runs := 0, 0
	c := newLoop(t, guard, func(observation loop.Observation) {
		if observation.Outcome == loop.Delayed {
			wantDelay(t, observation.Err)
			if delays++; delays == 2 {
				server.start(t)
			}
		}
	}, func(context.Context) error { runs++; return nil })
	server.kill()
	if got := process(t, c, outbox.NewID()); got != loop.Handled || runs != 1 || delays < 2 {
		t.Errorf("got %s after %d delays and %d runs", got, delays, runs)
	}
}

// A handler that has finished is not run again, whatever became of its mark; that is logged.
func TestOnceAcknowledgesWhatCouldNotBeMarked(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	var said strings.Builder
	config := extended
	config.Logger = slog.New(slog.NewTextHandler(&said, nil))
	guard := newGuard(t, connect(t, server.address), config)
	if err := once(t.Context(), guard, &loop.Event{ID: outbox.NewID()},
		func(context.Context) error { server.kill(); return nil }); err != nil {
		t.Errorf("got %v", err)
	}
	if strings.Count(said.String(), "its mark is not certain") != 1 {
		t.Errorf("the log says:\n%s", said.String())
	}
}

// Whoever loses the hold and fails has failed: the message comes again.
func TestOnceAfterALostHold(t *testing.T) {
	t.Parallel()
	s := newEnv(t, extended)
	err := once(t.Context(), s.guard, &loop.Event{ID: s.id}, func(ctx context.Context) error {
		s.steal(t)
		if err := waitLost(ctx); err != nil {
			t.Error(err)
		}
		return &redisinbox.UnavailableError{Err: errFailed} // of a guard that the handler has for something else
	})
	wantLost(t, err, false)
	if _, delay := errors.AsType[*loop.DelayError](err); delay {
		t.Errorf("got a delay: %v", err)
	}
}
