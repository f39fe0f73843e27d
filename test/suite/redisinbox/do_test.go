package redisinbox

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// hold has a handler hold the scene's event until it is released.
func (s env) hold(t *testing.T) (release func()) {
	t.Helper()
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		already, err := s.do(t.Context(), func(context.Context) error {
			close(entered)
			<-leave
			return nil
		})
		if already || err != nil {
			t.Errorf("the handler that holds the event: already=%v, err=%v", already, err)
		}
	}()
	release = sync.OnceFunc(func() { close(leave); <-left })
	t.Cleanup(release)
	select {
	case <-entered:
	case <-left:
		t.Fatal("the event is not held")
	}
	return release
}

func TestDoHandlesOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	runs := 0
	handler := func(context.Context) error { runs++; s.wantMark(t, "held:"); return nil }
	already, err := s.do(t.Context(), handler)
	wantHandled(t, already, err)
	s.wantMark(t, "done:")
	if left := s.client.PTTL(t.Context(), s.key).Val(); left <= long.Hold || left > long.Keep {
		t.Errorf("the mark expires in %s, want the keep", left)
	}
	for range 3 {
		already, err = s.do(t.Context(), handler)
		wantAlready(t, already, err)
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
}

// What a mark takes is in docs/guide/redis-inbox.md.
func TestWhatAMarkTakes(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	client := connect(t, services.Redis())
	guard := newGuard(t, client, redisinbox.Config{Prefix: "outbox", Keep: 10 * time.Minute})
	already, err := guard.Do(t.Context(), "order-mailer", s.id, succeed)
	wantHandled(t, already, err)
	taken, err := client.MemoryUsage(t.Context(), "outbox:evt:processed:order-mailer:"+s.id.String()).Result()
	if err != nil || taken > 250 {
		t.Errorf("a mark takes %d bytes, and should take 250 or less: %v", taken, err)
	}
	t.Logf("mark_bytes=%d", taken)
}

func TestAFailureLeavesTheEventProcessable(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	for range 3 {
		_, err := s.do(t.Context(), fail)
		if !errors.Is(err, errFailed) || redisinbox.Handled(err) {
			t.Fatalf("got %v, want the handler's error", err)
		}
		s.wantMark(t, "")
	}
	already, err := s.do(t.Context(), succeed)
	wantHandled(t, already, err)
}

// A panic goes on, and so does a goroutine that ends itself; the event is free again.
func TestAPanicFreesTheEventAndGoesOn(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	func() {
		defer func() {
			if got := recover(); got != "the handler's" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = s.do(t.Context(), func(context.Context) error { panic("the handler's") })
		t.Error("the panic has not gone on")
	}()
	s.wantMark(t, "")

	var group sync.WaitGroup
	group.Go(func() {
		_, _ = s.do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		t.Error("the goroutine has not ended")
	})
	group.Wait()
	s.wantMark(t, "")
	already, err := s.do(t.Context(), succeed)
	wantHandled(t, already, err)
}

// A copy that comes while the first is handled is delayed (fault I3); when the first is done, it is skipped.
func TestACopyOfAHeldEventIsDelayed(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	release := s.hold(t)
	_, err := s.do(t.Context(), unwanted(t))
	if after := wantHeld(t, err); after <= 0 || after > long.Hold {
		t.Errorf("delayed by %s, want what is left of the hold", after)
	}
	if !strings.Contains(err.Error(), "do not acknowledge") {
		t.Errorf("it does not say what to do: %v", err)
	}
	release()
	already, err := s.do(t.Context(), unwanted(t))
	wantAlready(t, already, err)
}

func TestConcurrentCopiesRunOneHandler(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	var runs, held atomic.Int64
	const copies = 50
	var group sync.WaitGroup
	for range copies {
		group.Go(func() {
			_, err := s.do(t.Context(), func(context.Context) error {
				runs.Add(1)
				return eventually.Works(t.Context(), func() error { // all the others are delayed
					if held.Load() < copies-1 {
						return errors.New("some copies have not come")
					}
					return nil
				})
			})
			if _, delayed := errors.AsType[*redisinbox.HeldError](err); delayed {
				held.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if runs.Load() != 1 || held.Load() != copies-1 {
		t.Errorf("%d handlers ran and %d copies were delayed", runs.Load(), held.Load())
	}
}

// The failure of one whose hold has passed on does not free what another holds or has done (fault I5).
func TestAFailureRemovesOnlyItsOwnMark(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"held:another", "done:another"} {
		s := newEnv(t, long)
		_, err := s.do(t.Context(), func(ctx context.Context) error {
			s.set(t, other)
			return errFailed
		})
		if !errors.Is(err, errFailed) {
			t.Errorf("got %v", err)
		}
		if got := s.mark(t); got != other {
			t.Errorf("%s was replaced by %q", other, got)
		}
	}
}

func (s env) set(t *testing.T, mark string) {
	t.Helper()
	if err := s.client.Set(t.Context(), s.key, mark, time.Minute).Err(); err != nil {
		t.Error(err)
	}
}

// Whoever finishes after another took the event is told, and changes nothing (fault I4).
func TestAFinishTellsThatTheHoldWasLost(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"held:another", "done:another"} {
		s := newEnv(t, long)
		_, err := s.do(t.Context(), func(ctx context.Context) error {
			s.set(t, other)
			return nil
		})
		wantLost(t, err, true)
		if got := s.mark(t); got != other {
			t.Errorf("%s was replaced by %q", other, got)
		}
	}
}

// A hold that lapsed and that nobody took is no reason to forget that the event is handled.
func TestALapsedHoldIsFinished(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	already, err := s.do(t.Context(), func(ctx context.Context) error { return s.client.Del(ctx, s.key).Err() })
	wantHandled(t, already, err)
	s.wantMark(t, "done:")
}

// Shutdown cancels the handler's context. What it has finished all the same is marked, what it has not is free.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.do(ctx, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || redisinbox.Handled(err) {
		t.Errorf("got %v, want the handler's error", err)
	}
	s.wantMark(t, "")

	ctx, cancel = context.WithCancel(t.Context())
	already, err := s.do(ctx, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return nil
	})
	wantHandled(t, already, err)
	s.wantMark(t, "done:")

	s.id = outbox.NewID()
	_, err = s.do(ctx, unwanted(t)) // the context has ended before
	wantUnavailable(t, err, false)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is missing: %v", err)
	}
}

// A handler with a guard of its own may return what that one said. It says nothing about the outer event.
func TestAnErrorOfAnotherGuardIsNotTakenForAnAnswer(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	for _, inner := range []error{
		&redisinbox.UnavailableError{Err: errFailed, Handled: true},
		&redisinbox.LostError{Handled: true},
	} {
		_, err := s.do(t.Context(), func(context.Context) error { return inner })
		if err == nil || redisinbox.Handled(err) {
			t.Errorf("%T of a handler: handled=%v, err=%v", inner, redisinbox.Handled(err), err)
		}
	}
	s.wantMark(t, "")
}

// Every command may be sent again because its answer was lost; none does harm by that.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	middleman := proxy.New(t, services.Redis())
	through := connect(t, middleman.Address())
	for _, lost := range []string{"held:", "done:", ""} { // the take, the finish, the release
		s := newEnv(t, long)
		config := long
		config.Prefix, _, _ = strings.Cut(s.key, ":")
		s.guard = newGuard(t, through, config)
		if _, err := s.guard.Do(t.Context(), "warm", s.id, fail); !errors.Is(err, errFailed) { // Redis knows the scripts
			t.Fatal(err)
		}
		if lost == "" {
			_, err := s.do(t.Context(), func(context.Context) error {
				middleman.At("held:", proxy.LoseAnswer)
				return errFailed
			})
			if !errors.Is(err, errFailed) {
				t.Error(err)
			}
			s.wantMark(t, "")
		} else {
			middleman.At(lost, proxy.LoseAnswer)
			already, err := s.do(t.Context(), succeed)
			wantHandled(t, already, err)
			s.wantMark(t, "done:")
		}
		if middleman.Faults() == 0 {
			t.Error("no answer was lost: nothing was tested")
		}
	}
}
