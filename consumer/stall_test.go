package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

// A broker delivers events as real ones do: what failed comes again after its time, and each delivery is counted. It
// runs in simulated time.
type broker struct {
	consumer *consumer.Consumer
	places   chan struct{} // for so many messages at a time

	mu        sync.Mutex
	verdicts  map[outbox.ID]consumer.Outcome // the last of each event
	delivered map[outbox.ID]int
}

// newBroker makes a broker whose consumer does this work.
func newBroker(t *testing.T, places int, work func(outbox.ID) error) *broker {
	t.Helper()
	b := &broker{
		places: make(chan struct{}, places), verdicts: map[outbox.ID]consumer.Outcome{}, delivered: map[outbox.ID]int{},
	}
	var err error
	b.consumer, err = consumer.New(consumer.Config{Name: "tester", Logger: slog.New(slog.DiscardHandler)},
		consumer.OnType(happened, func(_ context.Context, event *consumer.Event) error { return work(event.ID) }))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// send delivers an event until it is acknowledged or poisoned.
func (b *broker) send(ctx context.Context, id outbox.ID) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		b.places <- struct{}{}
		verdict := b.consumer.Process(ctx, attributesOf(id), nil, attempt)
		<-b.places
		b.mu.Lock()
		b.verdicts[id], b.delivered[id] = verdict.Outcome, attempt
		b.mu.Unlock()
		if verdict.Acknowledge() || verdict.Outcome == consumer.Poisoned {
			return
		}
		select {
		case <-time.After(verdict.After):
		case <-ctx.Done():
		}
	}
}

// sendAll delivers events, all at once, and waits until all are through.
func (b *broker) sendAll(ctx context.Context, ids ...outbox.ID) {
	var group sync.WaitGroup
	for _, id := range ids {
		group.Go(func() { b.send(ctx, id) })
	}
	group.Wait()
}

// last is what became of an event at last.
func (b *broker) last(id outbox.ID) consumer.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.verdicts[id]
}

// count is how many events have this outcome.
func (b *broker) count(outcome consumer.Outcome) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, got := range b.verdicts {
		if got == outcome {
			n++
		}
	}
	return n
}

func someEvents(n int) []outbox.ID {
	ids := make([]outbox.ID, n)
	for i := range ids {
		ids[i] = outbox.NewID()
	}
	return ids
}

// An outage of hours poisons nothing, and afterwards everything is handled.
func TestAnOutageIsNoEventsFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(2 * time.Hour)
		b := newBroker(t, 16, func(outbox.ID) error {
			if time.Now().Before(back) {
				return errFailed
			}
			return nil
		})
		began := time.Now()
		ids := someEvents(20)
		b.sendAll(t.Context(), ids...)
		if handled := b.count(consumer.Handled); handled != len(ids) {
			t.Errorf("%d were handled, %d poisoned", handled, b.count(consumer.Poisoned))
		}
		if took := time.Since(began); took > 2*time.Hour+10*time.Minute {
			t.Errorf("it took %s", took)
		}
		for _, id := range ids {
			if b.delivered[id] <= 10 {
				t.Errorf("an event came %d times: the bound was not reached, and nothing is shown", b.delivered[id])
			}
		}
	})
}

// Events that never can be handled do not hide behind the stall that they cause: others have their turn, and then the
// failures count, though the bad ones came first and took all the places.
func TestBadEventsDoNotBlockGoodOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad := map[outbox.ID]bool{}
		for _, id := range someEvents(20) {
			bad[id] = true
		}
		b := newBroker(t, 4, func(id outbox.ID) error {
			if bad[id] {
				return errFailed
			}
			return nil
		})
		var group sync.WaitGroup
		for id := range bad {
			group.Go(func() { b.send(t.Context(), id) })
		}
		<-time.After(time.Minute) // all places are taken
		began := time.Now()
		good := outbox.NewID()
		b.sendAll(t.Context(), good)
		if took, got := time.Since(began), b.last(good); took > 30*time.Minute || got != consumer.Handled {
			t.Errorf("the good one is %s after %s", got, took)
		}
		// As long as good ones come, the failures of the others count.
		ctx, cancel := context.WithCancel(t.Context())
		var flow sync.WaitGroup
		flow.Go(func() {
			for ctx.Err() == nil {
				b.send(t.Context(), outbox.NewID())
				<-time.After(time.Second)
			}
		})
		group.Wait()
		cancel()
		flow.Wait()
		if got := b.count(consumer.Poisoned); got != len(bad) {
			t.Errorf("%d of %d are poisoned", got, len(bad))
		}
	})
}

// Where nothing else happens, one or two events that fail are their own fault, at the bound.
func TestTooFewFailToTell(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			b := newBroker(t, 4, func(outbox.ID) error { return errFailed })
			began := time.Now()
			ids := someEvents(n)
			b.sendAll(t.Context(), ids...)
			for _, id := range ids {
				if b.verdicts[id] != consumer.Poisoned || b.delivered[id] != 10 {
					t.Errorf("%s after %d deliveries", b.verdicts[id], b.delivered[id])
				}
			}
			// 1+2+4+8+16+32+60+60+60: docs/guide/consumers.md says so.
			if took := time.Since(began); took != 243*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// The third event that fails is not charged and stays here; one that is handled ends that, and a duplicate does not: it
// may be Redis that knows it, while the database is away.
func TestWhatBeginsAndEndsAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answer error
		s := newEnv(t, consumer.Config{MaxAttempts: 1}, func(context.Context, *consumer.Event) error { return answer })
		stopped, stop := context.WithCancel(t.Context())
		stop()
		// deliver has an event delivered for the last time, by a loop that stops: a delay ends at once.
		deliver := func(id outbox.ID, err error) consumer.Outcome {
			answer = err
			return s.Process(stopped, attributesOf(id), nil, 10).Outcome
		}
		ids := someEvents(5)
		for i, step := range []struct {
			id     outbox.ID
			answer error
			want   consumer.Outcome
		}{
			{ids[0], errFailed, consumer.Poisoned},
			{ids[0], errFailed, consumer.Poisoned},
			{ids[0], errFailed, consumer.Poisoned}, // the same event is one
			{ids[1], errFailed, consumer.Poisoned},
			{ids[2], errFailed, consumer.Delayed},
			{ids[0], errFailed, consumer.Delayed},
			{ids[3], consumer.ErrDuplicate, consumer.Duplicate},
			{ids[0], errFailed, consumer.Delayed},
			{ids[3], consumer.Poison(errFailed), consumer.Poisoned}, // whoever says so is believed
			{ids[0], errFailed, consumer.Delayed},
			{ids[4], nil, consumer.Handled},
			{ids[0], errFailed, consumer.Poisoned},
			{ids[1], errFailed, consumer.Poisoned},
			{ids[3], &consumer.DelayError{Err: errors.New("Redis is away")}, consumer.Delayed},
			{ids[1], errFailed, consumer.Poisoned}, // a delay is no failure
			{ids[2], errFailed, consumer.Delayed},
		} {
			if got := deliver(step.id, step.answer); got != step.want {
				t.Errorf("step %d: got %s, want %s", i, got, step.want)
			}
		}
	})
}

// While the consumer stalls a message is tried here, later and later, and then given back and not charged.
func TestAStalledMessageIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newEnv(t, consumer.Config{}, answer(errFailed))
		s.deliver(t, 1)
		s.deliver(t, 1)
		began, before := time.Now(), len(s.observed)
		got := s.deliver(t, 10)
		if took := time.Since(began); took != (1+2+4+8+16+32+60+60+60)*time.Second || len(s.observed)-before != 10 {
			t.Errorf("it was kept for %s and %d tries", took, len(s.observed)-before)
		}
		if got.Outcome != consumer.Failed || got.After != time.Minute || got.Reason != errFailed.Error() {
			t.Errorf("got %+v", got)
		}
	})
}
