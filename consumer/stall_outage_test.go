package consumer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

// Of three bad events of one aggregate a relay sends the next one only when the one before is dead. The third dies as
// well: otherwise the good one behind it would never come.
func TestThreeBadEventsInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		good := outbox.NewID()
		s := newEnv(t, consumer.Config{}, func(_ context.Context, e *consumer.Event) error {
			if e.ID == good {
				return nil
			}
			return errFailed
		})
		for n, id := range []outbox.ID{outbox.NewID(), outbox.NewID(), outbox.NewID(), good} {
			attempts := 0
			for tries := 0; ; tries++ {
				v := s.try(t.Context(), id, attempts+1)
				if v.Acknowledge() {
					break
				}
				if v.Outcome == consumer.Failed {
					attempts++
				}
				if attempts == 10 {
					break // dead
				}
				if tries > 500 {
					t.Fatalf("event %d: %d tries, %d attempts: it neither dies nor goes", n+1, tries, attempts)
				}
				time.Sleep(5 * time.Minute) // synctest
			}
		}
	})
}

// What the handler of one type needs is away, and that of another works: nobody is charged for long.
func TestAnOutageOfOneType(t *testing.T) {
	t.Parallel()
	c, err := consumer.New(consumer.Config{Name: "tester"},
		consumer.OnType(happened, answer(errFailed)), consumer.OnType("other", answer(nil)))
	if err != nil {
		t.Fatal(err)
	}
	failed := map[outbox.ID]int{}
	var ids []outbox.ID
	for range 100 {
		ids = append(ids, outbox.NewID())
	}
	for range 10 { // each is tried ten times within the hour
		for _, id := range ids {
			if v := c.Try(t.Context(), attributesOf(id), nil, 1); v.Outcome == consumer.Failed {
				failed[id]++
			}
			c.Try(t.Context(), map[string]string{"event_id": outbox.NewID().String(), "event_type": "other"}, nil, 1)
		}
	}
	dead := 0
	for _, n := range failed {
		if n >= 10 {
			dead++
		}
	}
	if dead > 0 {
		t.Errorf("%d of 100 are dead", dead)
	}
}

// In a long outage in which many events are tried nobody is charged after the first two, however rarely each comes
// again.
func TestALongOutageOfMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newEnv(t, consumer.Config{}, answer(errFailed))
		charged := 0
		for range 2000 { // 33 hours, each event once
			if s.try(t.Context(), outbox.NewID(), 1).Outcome == consumer.Failed {
				charged++
			}
			time.Sleep(time.Minute) // synctest
		}
		if charged != 2 {
			t.Errorf("%d were charged", charged)
		}
	})
}
