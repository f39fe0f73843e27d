package natsjetstream_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// TestOrder: the events of an aggregate are handled one after the other and in order, and those of others meanwhile.
func TestOrder(t *testing.T) {
	t.Parallel()
	const aggregates, each = 8, 25
	w := newEnv(t)
	var (
		mu    sync.Mutex
		next  = map[string]int{}
		busy  = map[string]bool{}
		first sync.WaitGroup // the first of every aggregate, all at the same time
	)
	first.Add(aggregates)
	c := w.consumer(consumer.Config{}, func(_ context.Context, event *consumer.Event, payload license) error {
		mu.Lock()
		if busy[event.Aggregate.ID] || next[event.Aggregate.ID] != payload.N {
			t.Errorf("the event %d of %s came when %d was next", payload.N, event.Aggregate.ID, next[event.Aggregate.ID])
		}
		busy[event.Aggregate.ID] = true
		mu.Unlock()
		if payload.N == 0 {
			first.Done()
			first.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		busy[event.Aggregate.ID] = false
		next[event.Aggregate.ID]++
		return nil
	})
	w.durable(c, never)
	for n := range each {
		for a := range aggregates {
			w.emit(fmt.Sprint(a), n)
		}
	}
	w.run(w.js, c, aggregates)
	w.done()
	if handled := w.seen.count(anyEvent, consumer.Handled); handled != aggregates*each {
		t.Errorf("%d of %d were handled", handled, aggregates*each)
	}
}

// TestRoom: a loop runs no more handlers, and has no more messages, than it was told, and one long line leaves room for
// others.
func TestRoom(t *testing.T) {
	t.Parallel()
	const concurrency, held = 2, 8
	w := newEnv(t)
	release := make(chan struct{})
	running := make(chan struct{}, 100)
	c := w.consumer(consumer.Config{}, func(_ context.Context, event *consumer.Event, _ license) error {
		running <- struct{}{}
		<-release
		return nil
	})
	w.durable(c, never)
	for n := range held / 2 {
		w.emit("long", n)
	}
	for n := range 50 {
		w.emit(fmt.Sprint("short", n), n)
	}
	w.run(w.js, c, concurrency)
	let := w.letting(release)
	for range concurrency {
		eventually.Receive(t, "a handler runs", running)
	}
	eventually.True(t, "the loop is full", func() bool { return w.info().NumAckPending >= held })
	// The server would have sent more by the time that it has answered a few questions.
	for range 20 {
		if pending := w.info().NumAckPending; pending != held || len(running) != 0 {
			t.Fatalf("the loop has %d messages and runs %d more handlers", pending, len(running))
		}
	}
	let()
	w.done()
}

// TestStrictOrder: with one message at a time on the server's side the order holds over failures and processes.
func TestStrictOrder(t *testing.T) {
	t.Parallel()
	const events = 9
	w := newEnv(t)
	var mu sync.Mutex
	var got []int
	c := w.consumer(consumer.Config{}, func(_ context.Context, event *consumer.Event, payload license) error {
		if payload.N%4 == 1 && event.Attempt == 1 {
			return errPlanned
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, payload.N)
		return nil
	})
	w.durable(c, never, func(config *jetstream.ConsumerConfig) { config.MaxAckPending = 1 })
	for n := range events {
		w.emit("a", n)
	}
	for range 3 {
		w.run(w.connect(w.server.Address), c, 0)
	}
	w.done()
	if len(got) != events || !slices.IsSorted(got) {
		t.Errorf("the order was %v", got)
	}
}
