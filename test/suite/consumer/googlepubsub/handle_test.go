package googlepubsub_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// From the outbox to the effect: what was emitted happens once, with its payload, and in order.
func TestTypedEventsFromTheOutbox(t *testing.T) {
	t.Parallel()
	w, db := newEnv(t, recommended()), newEffects(t)
	const aggregates, each = 5, 10
	for number := range each {
		for aggregate := range aggregates {
			tx := db.Begin(t)
			if _, err := outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema),
				placed.New(fmt.Sprint(aggregate), order{Number: number})); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.relay(t, db)
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, db.handle)), googlepubsub.ConsumeConfig{})
	eventually.True(t, "all effects", func() bool {
		return db.Count(t, "SELECT count(*) FROM {schema}.effects") >= aggregates*each
	})
	stop()
	db.wantOnce(t, aggregates*each)
	if wrong := db.Count(t, `SELECT count(*) 
		FROM (SELECT number, row_number() OVER (PARTITION BY aggregate ORDER BY n) - 1 AS place FROM {schema}.effects) e
		WHERE number <> place`); wrong > 0 {
		t.Errorf("%d events of an aggregate were not handled in order", wrong)
	}
	w.wantLeft(t, 0)
}

// relay publishes what is in the outbox until the test ends.
func (w *env) relay(t *testing.T, db effects) {
	t.Helper()
	registry, err := outbox.NewRegistry(placed)
	if err != nil {
		t.Fatal(err)
	}
	p, err := googlepubsub.NewPublisher(w.client, googlepubsub.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(relay.Config{Database: db.URL, Schema: db.Schema, Registry: registry, Publisher: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() }) // after the relay
	background.Run(t, "the relay", r.Run)
}

// The events of one aggregate are handled one after the other, those of two at the same time.
func TestOrderOfAnAggregate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	const each = 20
	var mu sync.Mutex
	handled, busy := map[string][]int{}, map[string]bool{}
	met := make(chan struct{})
	handle := func(_ context.Context, event *consumer.Event, payload order) error {
		mu.Lock()
		if busy[event.Aggregate.ID] {
			t.Errorf("two events of %s at the same time", event.Aggregate.ID)
		}
		busy[event.Aggregate.ID] = true
		if busy["a"] && busy["b"] && len(handled["a"])+len(handled["b"]) == 0 {
			close(met)
		}
		mu.Unlock()
		select {
		case <-met:
		case <-time.After(eventually.Patience):
			t.Error("events of two aggregates are not handled at the same time")
		}
		if payload.Number == 0 {
			<-time.After(time.Second) // the next one has time enough to come too early
		}
		mu.Lock()
		defer mu.Unlock()
		busy[event.Aggregate.ID] = false
		handled[event.Aggregate.ID] = append(handled[event.Aggregate.ID], payload.Number)
		return nil
	}
	for number := range each {
		w.publish(t, newMessage("a", number), newMessage("b", number))
	}
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, handle)), googlepubsub.ConsumeConfig{})
	eventually.True(t, "all are handled", func() bool { return w.outcomes.count(consumer.Handled, "") >= 2*each })
	stop()
	for aggregate, numbers := range handled {
		if len(numbers) != each || !slices.IsSorted(numbers) {
			t.Errorf("the events of %s were handled as %v", aggregate, numbers)
		}
	}
}

// A handler that takes longer than the ack deadline keeps its message (fault I13).
func TestFaultI13SlowHandler(t *testing.T) {
	t.Parallel()
	w := newEnv(t, bare())
	deliveries := make(chan struct{}, 100)
	done := make(chan struct{})
	handle := func(ctx context.Context, _ *consumer.Event, _ order) error {
		deliveries <- struct{}{}
		select {
		case <-time.After(15 * time.Second): // the ack deadline is 10 seconds, the subscription's and the client library's
		case <-ctx.Done():
			return ctx.Err()
		}
		close(done)
		return nil
	}
	stop := w.run(t, w.consumer(t, consumer.Config{Deadline: eventually.Patience}, consumer.On(placed, handle)),
		googlepubsub.ConsumeConfig{})
	w.publish(t, newMessage("a", 1))
	eventually.Receive(t, "the handler is done", done)
	stop()
	if n := len(deliveries); n != 1 {
		t.Errorf("handled %d times at the same time", n)
	}
	w.wantLeft(t, 0)
}

// The acknowledgement is lost when the effect has happened: the copy is skipped and acknowledged (fault I12).
func TestFaultI12AcknowledgementLost(t *testing.T) {
	t.Parallel()
	w, db := newEnv(t, recommended()), newEffects(t)
	w.inject(t, pubsubemulator.Fault{
		Kind: pubsubemulator.KindError, Code: "INVALID_ARGUMENT", Method: "Acknowledge", Count: 1,
	})
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, db.handle)), googlepubsub.ConsumeConfig{})
	w.publish(t, newMessage("a", 1))
	eventually.True(t, "the copy is recognised", func() bool { return w.outcomes.count(consumer.Duplicate, "a") > 0 })
	stop()
	db.wantOnce(t, 1)
	if fired := w.emulator.Faults()[0].Fired; fired != 1 {
		t.Errorf("%d acknowledgements were lost", fired)
	}
	w.wantLeft(t, 0)
}

// A type that is named is none of this consumer's business.
func TestIgnoredTypesAreAcknowledged(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	other := newMessage("a", 1)
	other.Attributes["event_type"] = "order_lost"
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, never(t)), consumer.Ignore("order_lost")),
		googlepubsub.ConsumeConfig{})
	w.publish(t, other)
	eventually.True(t, "it is ignored", func() bool { return w.outcomes.count(consumer.Ignored, "") > 0 })
	stop()
	w.wantLeft(t, 0)
}

func never(t *testing.T) func(context.Context, *consumer.Event, order) error {
	t.Helper()
	return func(context.Context, *consumer.Event, order) error {
		t.Error("the handler was called")
		return nil
	}
}
