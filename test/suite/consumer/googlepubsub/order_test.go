package googlepubsub_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/googleemulator"
)

// Of the events of one aggregate one fails twice. Pub/Sub then sends it and all later ones again, those too that are
// handled: each has its effect once, the copies are known, and the state that the events carry never goes backwards.
func TestAFailureInAnAggregate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	stateThroughAFailure(t, w)
	if copies := w.outcomes.count(consumer.Duplicate, "a"); copies == 0 {
		t.Error("no event came again behind the one that failed: this shows nothing")
	}
}

// The same with Google's own emulator, which does not send again what is acknowledged.
func TestAFailureInAnAggregateOfGooglesEmulator(t *testing.T) {
	t.Parallel()
	w, remove := newGoogleEnv(t, googleemulator.Start(t), quick())
	stateThroughAFailure(t, w)
	remove()
}

func stateThroughAFailure(t *testing.T, w *env) {
	t.Helper()
	const events, bad, failures = 30, 5, 2
	db := newEffects(t)
	var mu sync.Mutex
	var states []int
	failed := 0
	handle := func(ctx context.Context, event *consumer.Event, payload order) error {
		mu.Lock()
		fails := payload.Number == bad && failed < failures
		if fails {
			failed++
		}
		mu.Unlock()
		switch {
		case fails:
			return errBroken
		case event.Aggregate.ID != "a":
			return nil // a marker
		}
		if err := db.handle(ctx, event, payload); err != nil {
			return err
		}
		return outbox.InTx(ctx, db.Pool, func(ctx context.Context, tx pgx.Tx) error {
			newer, err := inbox.Newer(ctx, outbox.InSchema(tx, db.Schema), name, event.Aggregate, event.Seq)
			if err != nil || !newer {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			states = append(states, payload.Number)
			return nil
		})
	}
	for number := range events {
		w.publish(t, newMessage("a", number+1))
	}
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, handle)), googlepubsub.ConsumeConfig{})
	eventually.True(t, "all have their effect", func() bool {
		return w.outcomes.count(consumer.Handled, "a") >= events
	})
	w.awaitEmpty(t)
	stop()
	db.wantOnce(t, events)
	if !slices.IsSorted(states) || states[len(states)-1] != events {
		t.Errorf("the state went from %v", states)
	}
	if n := w.outcomes.count(consumer.Failed, "a"); n != failures {
		t.Errorf("failed %d times, want %d", n, failures)
	}
}
