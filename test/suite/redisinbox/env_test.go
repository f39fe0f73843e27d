package redisinbox

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// TestMain is also the entry of the consumers that are killed or stopped.
func TestMain(m *testing.M) {
	if text := os.Getenv(victimVariable); text != "" {
		os.Exit(live(text))
	}
	logging.Disable() // the client's own log, which says how often it could not connect
	os.Exit(goroutines.Run(m))
}

const consumer = "compliance"

// connect makes a client that gives up soon, since tests wait for that.
func connect(t testing.TB, address string) *redis.Client {
	t.Helper()
	client := redis.NewClient(options(address))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func options(address string) *redis.Options {
	return &redis.Options{Addr: address, ContextTimeoutEnabled: true, DialerRetries: 1}
}

// newPrefix returns a prefix that no other test of any process uses.
func newPrefix() string { return "test-" + strings.ToLower(rand.Text()) }

// long is a hold that no test outlives, not on a busy machine either, and a keep that leaves nothing behind for long.
var long = redisinbox.Config{Hold: 5 * time.Minute, Keep: 10 * time.Minute}

// newGuard makes a guard with a prefix of its own.
func newGuard(t testing.TB, client redis.UniversalClient, config redisinbox.Config) *redisinbox.Guard {
	t.Helper()
	if config.Prefix == "" {
		config.Prefix = newPrefix()
	}
	guard, err := redisinbox.New(client, config)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// env is a guard on the shared server, and an event.
type env struct {
	client *redis.Client
	guard  *redisinbox.Guard
	id     outbox.ID
	key    string
}

func newEnv(t testing.TB, config redisinbox.Config) env {
	t.Helper()
	config.Prefix = newPrefix()
	s := env{client: connect(t, services.Redis()), id: outbox.NewID()}
	s.guard = newGuard(t, s.client, config)
	s.key = config.Prefix + ":evt:processed:" + consumer + ":" + s.id.String()
	return s
}

// do has the guard run a handler for the scene's event.
func (s env) do(ctx context.Context, handler func(context.Context) error) (bool, error) {
	return s.guard.Do(ctx, consumer, s.id, handler)
}

// mark reads the mark, or nothing.
func (s env) mark(t testing.TB) string {
	t.Helper()
	mark, err := s.client.Get(t.Context(), s.key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return mark
}

func (s env) wantMark(t testing.TB, beginning string) {
	t.Helper()
	if mark := s.mark(t); !strings.HasPrefix(mark, beginning) || beginning == "" && mark != "" {
		t.Fatalf("the mark is %q, want %q and a token", mark, beginning)
	}
}

// steal gives the event to another delivery, which nobody hears of again.
func (s env) steal(t testing.TB) {
	t.Helper()
	if err := s.client.Set(t.Context(), s.key, "held:another", 10*time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
}

// succeed, fail and unwanted are handlers.
var errFailed = errors.New("the mail server is down")

func succeed(context.Context) error { return nil }
func fail(context.Context) error    { return errFailed }

func unwanted(t testing.TB) func(context.Context) error {
	t.Helper()
	return func(context.Context) error {
		t.Error("the handler was run")
		return nil
	}
}

// wantHandled wants that a handler was run and has finished.
func wantHandled(t testing.TB, already bool, err error) {
	t.Helper()
	if already || err != nil {
		t.Fatalf("got already=%v, err=%v; want it handled now", already, err)
	}
}

func wantAlready(t testing.TB, already bool, err error) {
	t.Helper()
	if !already || err != nil {
		t.Fatalf("got already=%v, err=%v; want it handled before", already, err)
	}
}

func wantHeld(t testing.TB, err error) time.Duration {
	t.Helper()
	var held *redisinbox.HeldError
	if !errors.As(err, &held) || redisinbox.Handled(err) {
		t.Fatalf("got %v, want that another delivery is being handled", err)
	}
	return held.RetryAfter
}

func wantUnavailable(t testing.TB, err error, handled bool) {
	t.Helper()
	var unavailable *redisinbox.UnavailableError
	if !errors.As(err, &unavailable) || redisinbox.Handled(err) != handled {
		t.Fatalf("got %v, want that Redis could not be asked and handled=%v", err, handled)
	}
}

func wantLost(t testing.TB, err error, handled bool) {
	t.Helper()
	var lost *redisinbox.LostError
	if !errors.As(err, &lost) || redisinbox.Handled(err) != handled {
		t.Fatalf("got %v, want that the hold was lost and handled=%v", err, handled)
	}
}

// hook is a client's hook that does nothing.
type hook struct{}

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// deliver has an event delivered again and again, as a broker would, until it may be acknowledged.
func deliver(t testing.TB, guard *redisinbox.Guard, id outbox.ID, handler func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	for {
		_, err := guard.Do(ctx, consumer, id, handler)
		if redisinbox.Handled(err) {
			return
		}
		pause := 10 * time.Millisecond
		if held, ok := errors.AsType[*redisinbox.HeldError](err); ok {
			pause = held.RetryAfter
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			t.Fatalf("the event is not handled: %v", err)
		}
	}
}
