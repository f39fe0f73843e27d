package redisinbox

import (
	"context"
	"errors"
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

// checkAndMark is the one-call form for the scene's event.
func (s env) checkAndMark(t *testing.T, guard *redisinbox.Guard) (bool, error) {
	t.Helper()
	return guard.CheckAndMarkProcessed(t.Context(), consumer, s.id, time.Minute)
}

func TestCheckAndMarkProcessed(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	already, err := s.checkAndMark(t, s.guard)
	wantHandled(t, already, err)
	s.wantMark(t, "marked:")
	if left := s.client.PTTL(t.Context(), s.key).Val(); left <= 0 || left > time.Minute {
		t.Errorf("the mark expires in %s, want within a minute", left)
	}
	already, err = s.checkAndMark(t, s.guard)
	wantAlready(t, already, err)
	already, err = s.checkAndMark(t, newGuard(t, s.client, redisinbox.Config{}))
	wantHandled(t, already, err) // another prefix
	already, err = s.guard.CheckAndMarkProcessed(t.Context(), "mailer", s.id, time.Minute)
	wantHandled(t, already, err) // another consumer
	already, err = s.guard.ForTenant("acme").CheckAndMarkProcessed(t.Context(), consumer, s.id, time.Minute)
	wantHandled(t, already, err) // another tenant's event of the same id
}

// IN-2: the key is what others may have been told to look for. The prefix is "outbox"; a program that shares marks with
// the marketplace of the source document sets its "pf".
func TestTheKeyIsTheOneOfTheContract(t *testing.T) {
	t.Parallel()
	client := connect(t, services.Redis())
	for prefix, begin := range map[string]string{"": "outbox", "pf": "pf"} {
		guard, err := redisinbox.New(client, redisinbox.Config{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		id := outbox.NewID()
		for tenant, end := range map[string]string{
			"":         id.String(),
			"a:b {c}%": "a%3Ab+%7Bc%7D%25:" + id.String(),
		} {
			key := begin + ":evt:processed:compliance:" + end
			t.Cleanup(func() { client.Del(context.Background(), key) })
			already, err := guard.ForTenant(tenant).CheckAndMarkProcessed(t.Context(), consumer, id, 0)
			wantHandled(t, already, err)
			if left := client.TTL(t.Context(), key).Val(); left < 719*time.Hour || left > 720*time.Hour {
				t.Errorf("%s expires in %s, want 720h", key, left)
			}
		}
	}
}

func TestAMarkExpires(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	already, err := s.guard.CheckAndMarkProcessed(t.Context(), consumer, s.id, time.Millisecond)
	wantHandled(t, already, err)
	if err := eventually.Works(t.Context(), func() error {
		already, err := s.checkAndMark(t, s.guard)
		if already {
			return errFailed
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestOneOfManyConcurrentChecksIsTheFirst(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	var first atomic.Int64
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			already, err := s.checkAndMark(t, s.guard)
			if err != nil {
				t.Error(err)
			}
			if !already {
				first.Add(1)
			}
		})
	}
	group.Wait()
	if first.Load() != 1 {
		t.Errorf("%d were told that they are the first", first.Load())
	}
}

// Whoever fails takes back their own mark, and nobody else's (fault I5).
func TestDeleteTakesBackItsOwnMarkOnly(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	config := long
	config.Prefix, _, _ = strings.Cut(s.key, ":")
	other := newGuard(t, s.client, config)

	if err := s.guard.Delete(t.Context(), consumer, s.id); err != nil {
		t.Errorf("no mark: %v", err)
	}
	already, err := s.checkAndMark(t, s.guard)
	wantHandled(t, already, err)
	if err := other.Delete(t.Context(), consumer, s.id); err == nil {
		t.Error("another guard's mark was deleted without a word")
	}
	s.wantMark(t, "marked:")
	if err := s.guard.Delete(t.Context(), consumer, s.id); err != nil {
		t.Error(err)
	}
	s.wantMark(t, "")
	already, err = s.checkAndMark(t, other)
	wantHandled(t, already, err)
}

// The two forms share a key: each believes the other's marks, neither takes what the other holds for handled, and
// neither removes what the other has written.
func TestTheTwoFormsMeet(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	release := s.hold(t)
	_, err := s.checkAndMark(t, s.guard)
	wantHeld(t, err)
	if err := s.guard.Delete(t.Context(), consumer, s.id); err == nil {
		t.Error("what is held was deleted")
	}
	release()
	already, err := s.checkAndMark(t, s.guard)
	wantAlready(t, already, err)
	if err := s.guard.Delete(t.Context(), consumer, s.id); err == nil {
		t.Error("what Do has done was deleted")
	}
	s.wantMark(t, "done:")

	s.id = outbox.NewID()
	already, err = s.checkAndMark(t, s.guard)
	wantHandled(t, already, err)
	already, err = s.do(t.Context(), unwanted(t))
	wantAlready(t, already, err)
}

// Marks that another program has written in the same place count as handled.
func TestForeignMarksAreHandled(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	if err := s.client.Set(t.Context(), s.key, "1", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	already, err := s.checkAndMark(t, s.guard)
	wantAlready(t, already, err)
	already, err = s.do(t.Context(), unwanted(t))
	wantAlready(t, already, err)
}

// The client sends a command again when its answer is lost. A SET NX then meets its own mark, and a guard that believed
// the answer would take the event for handled and lose it.
func TestALostAnswerToSetNXLosesNoEvent(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	middleman := proxy.New(t, services.Redis())
	config := long
	config.Prefix, _, _ = strings.Cut(s.key, ":")
	guard := newGuard(t, connect(t, middleman.Address()), config)

	middleman.At("marked:", proxy.LoseAnswer)
	already, err := s.checkAndMark(t, guard)
	wantHandled(t, already, err)
	if middleman.Faults() == 0 {
		t.Error("no answer was lost: nothing was tested")
	}
	already, err = s.checkAndMark(t, guard)
	wantAlready(t, already, err)
}

func TestWhatIsNoTTL(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	for _, ttl := range []time.Duration{-1, -time.Hour, time.Nanosecond} {
		if _, err := s.guard.CheckAndMarkProcessed(t.Context(), consumer, s.id, ttl); !errors.Is(err, redisinbox.ErrRefused) {
			t.Errorf("a ttl of %s was taken", ttl)
		}
	}
	s.wantMark(t, "")
}
