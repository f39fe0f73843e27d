package natsjetstream_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// TestStop: a loop that is stopped finishes what it has begun and gives the rest to others at once; nothing is lost or
// handled twice, and that without an inbox.
func TestStop(t *testing.T) {
	t.Parallel()
	const events, concurrency = 60, 4
	w := newEnv(t)
	release, begun := make(chan struct{}), make(chan struct{}, events)
	stopping := w.consumer(consumer.Config{}, func(ctx context.Context, _ *consumer.Event, _ license) error {
		begun <- struct{}{}
		<-release
		return ctx.Err() // a handler that runs has its time
	})
	w.durable(stopping, never)
	var ids []outbox.ID
	for i := range events {
		ids = append(ids, w.emit(fmt.Sprint(i%10), i))
	}
	stop := w.run(w.connect(w.server.Address), stopping, concurrency)
	let := w.letting(release)
	for range concurrency {
		eventually.Receive(t, "a handler runs", begun)
	}
	eventually.True(t, "messages wait in the loop", func() bool { return w.info().NumAckPending == 4*concurrency })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	other := w.consumer(consumer.Config{}, func(context.Context, *consumer.Event, license) error { return nil })
	w.run(w.connect(w.server.Address), other, concurrency)
	// All but those that are being handled, and the next of their aggregates.
	eventually.True(t, "another loop has the rest", func() bool {
		return w.seen.count(anyEvent, consumer.Handled) >= events-2*concurrency
	})
	select {
	case <-stopped:
		t.Error("the loop has ended before its handlers")
	default:
	}
	let()
	eventually.Receive(t, "the loop has stopped", stopped)
	if len(begun) != 0 {
		t.Errorf("%d handlers were begun after the stop", len(begun))
	}
	w.done() // the AckWait would be longer than this test
	for _, id := range ids {
		if n := w.seen.count(id, consumer.Handled); n != 1 {
			t.Errorf("an event was handled %d times", n)
		}
	}
	w.noLetters()
}

// TestStopUnderLoad: loops that are stopped while messages are on their way leave none behind: each is handled once,
// long before the AckWait, and is not delivered more often than loops were stopped.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	const events, stops = 1500, 10
	w := newEnv(t)
	c := w.consumer(consumer.Config{}, func(context.Context, *consumer.Event, license) error { return nil })
	w.durable(c, never)
	for i := range events {
		w.emit(fmt.Sprint(i%50), i)
	}
	for i := range stops {
		stop := w.run(w.connect(w.server.Address), c, 4)
		eventually.True(t, "the load goes on", func() bool {
			return w.seen.count(anyEvent, consumer.Handled) >= (i+1)*events/(stops+1)
		})
		stop()
	}
	w.run(w.connect(w.server.Address), c, 4)
	w.done()
	if len(w.seen.all) != events {
		t.Errorf("%d events were handled %d times", events, len(w.seen.all))
	}
	for _, o := range w.seen.all {
		if o.Event.Attempt > stops+1 {
			t.Errorf("an event was delivered %d times", o.Event.Attempt)
		}
	}
}

// TestStopDuringAnOutage: a loop can be stopped while the server is away, and what it could not acknowledge comes
// again.
func TestStopDuringAnOutage(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	handling, release := make(chan struct{}, 1), make(chan struct{})
	c := w.consumer(consumer.Config{}, func(_ context.Context, event *consumer.Event, _ license) error {
		if event.Attempt == 1 {
			handling <- struct{}{}
			<-release
		}
		return nil
	})
	w.durable(c, never)
	id := w.emit("a", 1)
	js := w.connect(w.server.Address, nats.ReconnectBufSize(-1))
	stop := w.run(js, c, 0)
	let := w.letting(release)
	eventually.Receive(t, "a handler runs", handling)
	w.server.Close()
	eventually.True(t, "the connection is lost", func() bool { return !js.Conn().IsConnected() })
	let()
	stop()
	w.start()
	w.hurry()
	w.run(w.connect(w.server.Address), c, 0)
	w.done()
	if n := w.seen.count(id, consumer.Handled); n != 2 {
		t.Errorf("it was handled %d times", n)
	}
}

// TestPanic: a handler that panics fails, and nothing else does.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{MaxAttempts: 2},
		func(_ context.Context, event *consumer.Event, payload license) error {
			if payload.N == 13 || event.Attempt == 1 {
				panic("planned")
			}
			return nil
		})
	w.durable(c, never)
	bad, good := w.emit("a", 13), w.emit("a", 1)
	w.run(w.js, c, 0)
	w.done()
	if len(w.letters()) != 1 || w.seen.count(bad, consumer.Poisoned) != 1 || w.seen.count(good, consumer.Handled) != 1 {
		t.Errorf("seen: %v", w.seen.all)
	}
}

// TestOutageOfADependency: while everything fails nothing becomes a dead letter, however long that lasts.
func TestOutageOfADependency(t *testing.T) {
	t.Parallel()
	const events, attempts = 8, 2 // the pauses grow from one to the next
	w := newEnv(t)
	var back atomic.Bool
	c := w.consumer(consumer.Config{MaxAttempts: attempts}, func(context.Context, *consumer.Event, license) error {
		if back.Load() {
			return nil
		}
		return errors.New("the database is away")
	})
	w.durable(c, 2*time.Second)
	for i := range events {
		w.emit(fmt.Sprint(i), i)
	}
	w.run(w.js, c, 0)
	// More often than there are attempts.
	eventually.True(t, "the outage has lasted", func() bool {
		return w.seen.count(anyEvent, consumer.Delayed) > attempts*events
	})
	back.Store(true)
	eventually.True(t, "all are handled", func() bool { return w.seen.count(anyEvent, consumer.Handled) >= events })
	w.done()
	w.noLetters()
}

// TestFaultI3HeldIsNotAcknowledged: an event that another process is handling is kept, not acknowledged, and goes to
// whoever is next when this process stops: the other may have died.
func TestFaultI3HeldIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	const ackWait, delay = 8 * time.Second, time.Second // the machine may stand still for most of the AckWait
	w := newEnv(t)
	var free atomic.Bool
	c := w.consumer(consumer.Config{MaxAttempts: 1}, func(context.Context, *consumer.Event, license) error {
		if free.Load() {
			return nil
		}
		return &consumer.DelayError{After: delay, Err: errors.New("held by another")}
	})
	w.durable(c, ackWait)
	stop := w.run(w.connect(w.server.Address), c, 0)
	id := w.emit("a", 1)
	eventually.True(t, "it has been delayed for longer than the AckWait", func() bool {
		return w.seen.count(id, consumer.Delayed) > int(ackWait*5/4/delay)
	})
	if info := w.info(); info.NumAckPending != 1 || info.NumRedelivered != 0 {
		t.Errorf("the server waits for %d messages, %d of them delivered again", info.NumAckPending, info.NumRedelivered)
	}
	stop()
	free.Store(true)
	w.run(w.connect(w.server.Address), c, 0)
	w.done()
	if w.seen.count(id, consumer.Handled) != 1 {
		t.Errorf("seen: %v", w.seen.all)
	}
	w.noLetters()
}
