package googlepubsub_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// A stop lets what has begun end, and gives back what has not.
func TestStop(t *testing.T) {
	t.Parallel()
	w, db := newEnv(t, recommended()), newEffects(t)
	begun, goOn := make(chan struct{}, 100), make(chan struct{})
	handle := func(ctx context.Context, event *consumer.Event, payload order) error {
		begun <- struct{}{}
		select {
		case <-goOn:
			return db.handle(ctx, event, payload)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	stop := w.run(t, w.consumer(t, consumer.Config{Deadline: eventually.Patience}, consumer.On(placed, handle)),
		googlepubsub.ConsumeConfig{Concurrency: 2})
	const events = 6
	for number := range events {
		w.publish(t, newMessage(fmt.Sprint(number), number))
	}
	eventually.Receive(t, "a handler runs", begun)
	eventually.Receive(t, "another one too", begun)
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	select {
	case <-stopped:
		t.Error("stopped while handlers run")
	case <-time.After(time.Second):
	}
	close(goOn)
	eventually.Receive(t, "the loop stops", stopped)
	if len(begun) > 0 {
		t.Errorf("%d handlers began after the stop", len(begun))
	}
	db.wantOnce(t, 2)
	w.wantLeft(t, events-2)
	stop = w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, db.handle)), googlepubsub.ConsumeConfig{})
	eventually.True(t, "the others are handled", func() bool {
		return db.Count(t, "SELECT count(*) FROM {schema}.effects") == events
	})
	stop()
	db.wantOnce(t, events)
	if n := w.outcomes.count(consumer.Duplicate, ""); n > 0 {
		t.Errorf("%d acknowledgements did not reach Pub/Sub", n)
	}
	w.wantLeft(t, 0)
}

// A message whose handler waits for something is given back when the loop stops, and not acknowledged.
func TestStopWhileDelayed(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	handle := failing("bad", func() error { return &consumer.DelayError{After: time.Hour, Err: errBroken} })
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, handle)), googlepubsub.ConsumeConfig{})
	w.publish(t, newMessage("bad", 1))
	eventually.True(t, "it is delayed", func() bool { return w.outcomes.count(consumer.Delayed, "bad") == 1 })
	stop()
	w.wantLeft(t, 1)
	w.pullSome(t, name, 1)
}

// A stop does not wait for Pub/Sub to come back.
func TestStopInAnOutage(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, failing("", nil))), googlepubsub.ConsumeConfig{})
	w.publish(t, newMessage("a", 1))
	eventually.True(t, "the loop runs", func() bool { return w.outcomes.count(consumer.Handled, "a") == 1 })
	if err := w.emulator.Close(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	eventually.Receive(t, "the loop stops", stopped)
	// The library opens a stream all the same, and acknowledges, in ever longer pauses.
	_ = w.client.Close()
	eventually.True(t, "the library has given up", func() bool {
		stacks := make([]byte, 16<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return !bytes.Contains(stacks, []byte("openWithRetry")) && !bytes.Contains(stacks, []byte("messageIterator).sendAck"))
	})
}

// Without a client there is nothing to wait for.
func TestTheClientIsClosed(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	ended := make(chan error, 1)
	handler := w.consumer(t, consumer.Config{}, consumer.On(placed, failing("", nil)))
	go func() {
		ended <- googlepubsub.Consume(t.Context(), w.client, handler, googlepubsub.ConsumeConfig{Subscription: name})
	}()
	w.publish(t, newMessage("a", 1))
	eventually.True(t, "the loop runs", func() bool { return w.outcomes.count(consumer.Handled, "a") == 1 })
	if err := w.client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := eventually.Receive(t, "the loop ends", ended); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("it ended with %v", err)
	}
}
