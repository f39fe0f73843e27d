package redisinbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// While Redis is down nothing is run and nothing is acknowledged (fault I8). When it is back, events are handled
// without anybody's help.
func TestRedisDownFailsClosed(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	guard := newGuard(t, connect(t, server.address), long)
	id := outbox.NewID()
	server.kill()
	_, err := guard.Do(t.Context(), consumer, id, unwanted(t))
	wantUnavailable(t, err, false)
	if !strings.Contains(err.Error(), "do not acknowledge") {
		t.Errorf("it does not say what to do: %v", err)
	}
	already, err := guard.CheckAndMarkProcessed(t.Context(), consumer, id, time.Minute)
	wantUnavailable(t, err, false)
	if already {
		t.Error("an event that nobody could ask about was taken for handled")
	}
	if err := guard.Delete(t.Context(), consumer, id); err == nil {
		t.Error("a mark that nobody could delete was taken for deleted")
	}
	server.start(t)
	already, err = guard.Do(t.Context(), consumer, id, succeed)
	wantHandled(t, already, err)
}

func TestRedisDownFailsOpenIfToldTo(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	var said strings.Builder
	config := extended
	config.FailOpen = true
	config.Logger = slog.New(slog.NewTextHandler(&said, nil))
	guard := newGuard(t, connect(t, server.address), config)
	id := outbox.NewID()
	server.kill()

	runs := 0
	already, err := guard.Do(t.Context(), consumer, id, func(context.Context) error { runs++; return nil })
	wantHandled(t, already, err)
	if _, err = guard.Do(t.Context(), consumer, id, fail); !errors.Is(err, errFailed) {
		t.Errorf("got %v, want the handler's error", err)
	}
	if runs != 1 || strings.Count(said.String(), "unguarded") != 2 ||
		!strings.Contains(said.String(), "could not be marked") {
		t.Errorf("%d runs, and the log says:\n%s", runs, said.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = guard.Do(ctx, consumer, id, unwanted(t)) // open is not for those who stop
	wantUnavailable(t, err, false)

	// Redis comes back while an unguarded handler runs, and takes the mark.
	already, err = guard.Do(t.Context(), consumer, id, func(context.Context) error { server.start(t); return nil })
	wantHandled(t, already, err)
	already, err = guard.Do(t.Context(), consumer, id, unwanted(t))
	wantAlready(t, already, err)
}

// Redis dies while a handler runs. If it is back before the hold ends, the event is marked; else the event is handled
// and not marked, and that is said.
func TestRedisDiesWhileAHandlerRuns(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	guard := newGuard(t, connect(t, server.address), long)
	id := outbox.NewID()
	already, err := guard.Do(t.Context(), consumer, id, func(context.Context) error {
		server.kill()
		server.start(t) // it has forgotten the hold
		return nil
	})
	wantHandled(t, already, err)
	already, err = guard.Do(t.Context(), consumer, id, unwanted(t))
	wantAlready(t, already, err)

	guard = newGuard(t, connect(t, server.address), extended)
	_, err = guard.Do(t.Context(), consumer, id, func(context.Context) error { server.kill(); return nil })
	wantUnavailable(t, err, true)
	if !strings.Contains(err.Error(), "; acknowledge it") {
		t.Errorf("it does not say what to do: %v", err)
	}
	server.start(t)
}

// afterFailedMark calls a function once, when a mark could not be set.
type afterFailedMark struct {
	hook

	call func()
}

// ProcessHook stands behind every command.
func (a afterFailedMark) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil &&
			slices.ContainsFunc(cmd.Args(), func(arg any) bool { return strings.HasPrefix(fmt.Sprint(arg), "done:") }) {
			a.call()
		}
		return err
	}
}

// A mark that Redis did not take is tried again for as long as the hold lasts.
func TestAMarkIsTriedAgain(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := connect(t, server.address)
	client.AddHook(afterFailedMark{call: sync.OnceFunc(func() { server.start(t) })})
	config := long
	config.Hold = time.Minute // it is tried again thirty times in a hold
	guard := newGuard(t, client, config)
	id := outbox.NewID()
	already, err := guard.Do(t.Context(), consumer, id, func(context.Context) error { server.kill(); return nil })
	wantHandled(t, already, err)
	already, err = guard.Do(t.Context(), consumer, id, unwanted(t))
	wantAlready(t, already, err)
}

// A restart in which Redis forgets the hold does not cost the handler anything: the next extension takes the event
// again.
func TestAHoldSurvivesARestartWithoutMemory(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := connect(t, server.address)
	config := extended
	config.Hold = 20 * time.Second
	guard := newGuard(t, client, config)
	id := outbox.NewID()
	already, err := guard.Do(t.Context(), consumer, id, func(ctx context.Context) error {
		server.kill()
		server.start(t)
		if err := eventually.Works(ctx, func() error { // an extension has come; Redis did not know its script
			if n, err := client.DBSize(ctx).Result(); err != nil || n != 1 {
				return errors.Join(errors.New("the event is not held again"), err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		_, err := guard.Do(ctx, consumer, id, unwanted(t))
		wantHeld(t, err)
		return ctx.Err()
	})
	wantHandled(t, already, err)
}

// A Redis without an append-only file forgets what was handled when it dies, and copies are handled again; one with it,
// written through, does not (fault I7).
func TestARestartForgetsWithoutPersistence(t *testing.T) {
	t.Parallel()
	for name, remembers := range map[string]bool{"no": false, "yes": true} {
		t.Run("appendonly "+name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, "--appendonly", name, "--appendfsync", "always")
			guard := newGuard(t, connect(t, server.address), long)
			id := outbox.NewID()
			already, err := guard.Do(t.Context(), consumer, id, succeed)
			wantHandled(t, already, err)
			server.kill()
			server.start(t)
			already, err = guard.Do(t.Context(), consumer, id, succeed)
			if err != nil || already != remembers {
				t.Errorf("after the restart: already=%v, err=%v", already, err)
			}
		})
	}
}

// After a restart Redis does not know the scripts; they are sent whole.
func TestScriptsAreSentAgainAfterTheyWereFlushed(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := connect(t, server.address)
	guard := newGuard(t, client, long)
	flush := func(ctx context.Context) error { return client.ScriptFlush(ctx).Err() }
	for range 2 {
		id := outbox.NewID()
		_, err := guard.Do(t.Context(), consumer, id, func(ctx context.Context) error {
			return errors.Join(flush(ctx), errFailed)
		})
		if !errors.Is(err, errFailed) {
			t.Error(err)
		}
		if err := flush(t.Context()); err != nil {
			t.Error(err)
		}
		already, err := guard.Do(t.Context(), consumer, id, flush)
		wantHandled(t, already, err)
		already, err = guard.Do(t.Context(), consumer, id, unwanted(t))
		wantAlready(t, already, err)
	}
}

// A Redis that may evict forgets what was handled when its memory is full (fault I6); the check warns. One that may not
// evict refuses new marks instead, and events wait.
func TestShortMemory(t *testing.T) {
	t.Parallel()
	t.Run("evicts", func(t *testing.T) {
		t.Parallel()
		server := startServer(t, "--maxmemory-policy", "volatile-lru")
		client := connect(t, server.address)
		guard := newGuard(t, client, long)
		wantFinding(t, guard, "may_evict", true)
		limitMemory(t, client, 512<<10)
		var ids []outbox.ID
		for forgotten := 0; forgotten < 100; forgotten = figure(t, client, "stats", "Stats", "evicted_keys") {
			if len(ids) > 50_000 {
				t.Fatalf("of %d events %d were forgotten: nothing is shown", len(ids), forgotten)
			}
			for range 500 {
				ids = append(ids, outbox.NewID())
				already, err := guard.Do(t.Context(), consumer, ids[len(ids)-1], succeed)
				wantHandled(t, already, err)
			}
		}
		twice := 0
		for _, id := range ids {
			if _, err := guard.Do(t.Context(), consumer, id, func(context.Context) error { twice++; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if twice == 0 {
			t.Error("nothing was handled twice: nothing was shown")
		}
		t.Logf("of %d events %d were handled twice", len(ids), twice)
	})
	t.Run("refuses", func(t *testing.T) {
		t.Parallel()
		server := startServer(t, "--maxmemory-policy", "noeviction")
		client := connect(t, server.address)
		guard := newGuard(t, client, long)
		wantFinding(t, guard, "may_evict", false)
		id := outbox.NewID()
		limitMemory(t, client, -1)
		_, err := guard.Do(t.Context(), consumer, id, unwanted(t))
		wantUnavailable(t, err, false)
		if err := client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
		already, err := guard.Do(t.Context(), consumer, id, succeed)
		wantHandled(t, already, err)
	})
	t.Run("extends", func(t *testing.T) { // a handler that runs when memory runs short goes on
		t.Parallel()
		s := newEnv(t, extended)
		server := startServer(t, "--maxmemory-policy", "noeviction")
		s.client = connect(t, server.address)
		config := extended
		config.Prefix, _, _ = strings.Cut(s.key, ":")
		s.guard = newGuard(t, s.client, config)
		already, err := s.do(t.Context(), func(ctx context.Context) error {
			limitMemory(t, s.client, -1)
			s.wantExtended(t.Context(), t)
			return errors.Join(ctx.Err(), s.client.ConfigSet(ctx, "maxmemory", "0").Err())
		})
		wantHandled(t, already, err)
	})
}

// limitMemory lets a server use so many bytes more than it uses.
func limitMemory(t *testing.T, client *redis.Client, more int) {
	t.Helper()
	used := figure(t, client, "memory", "Memory", "used_memory")
	if err := client.ConfigSet(t.Context(), "maxmemory", strconv.Itoa(used+more)).Err(); err != nil {
		t.Fatal(err)
	}
}

// figure is one that a server tells about itself.
func figure(t *testing.T, client *redis.Client, about, section, name string) int {
	t.Helper()
	info, err := client.InfoMap(t.Context(), about).Result()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(info[section][name])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The rights that docs/guide/redis-inbox.md asks for are enough, and nothing in it needs another key.
func TestAUserWithFewRights(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--user", "guard", "on", "nopass", "~outbox:evt:processed:*", "+get", "+set", "+del",
		"+pexpire", "+pttl", "+eval", "+evalsha", "+info")
	options := options(server.address)
	options.Username, options.Password = "guard", "any"
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	config := long
	config.Prefix = "outbox"
	guard := newGuard(t, client, config)
	wantFinding(t, guard, "server_unknown", false)
	id := outbox.NewID()
	_, err := guard.Do(t.Context(), consumer, id, fail)
	if !errors.Is(err, errFailed) {
		t.Error(err)
	}
	already, err := guard.CheckAndMarkProcessed(t.Context(), consumer, id, 0)
	wantHandled(t, already, err)
	if err := guard.Delete(t.Context(), consumer, id); err != nil {
		t.Error(err)
	}
	already, err = guard.Do(t.Context(), consumer, id, func(ctx context.Context) error {
		_, err := guard.Do(ctx, consumer, id, unwanted(t))
		wantHeld(t, err)
		return nil
	})
	wantHandled(t, already, err)
	already, err = guard.CheckAndMarkProcessed(t.Context(), consumer, id, 0)
	wantAlready(t, already, err)
}

// Errors may have addresses, and never a password.
func TestErrorsHaveNoPassword(t *testing.T) {
	t.Parallel()
	const password = "correct-horse"
	server := startServer(t, "--requirepass", "another")
	options := options(server.address)
	options.Username, options.Password = "default", password
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	guard := newGuard(t, client, long)
	query := func() {
		_, err := guard.Do(t.Context(), consumer, outbox.NewID(), unwanted(t))
		wantUnavailable(t, err, false)
		_, checking := guard.Check(t.Context())
		if text := errors.Join(err, checking).Error(); strings.Contains(text, password) || strings.Contains(text, "another") {
			t.Errorf("a password is in %s", text)
		}
	}
	query() // refused
	server.kill()
	query() // not reached
	server.start(t)
}
