package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/broker/kafka"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// TestOrder: the events of an aggregate are handled one after the other and in order, also when one fails, and
// those of others meanwhile, although they are in one partition.
func TestOrder(t *testing.T) {
	t.Parallel()
	const aggregates, each = 8, 15
	w := newEnv(t, 1)
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
		if payload.N == 5 && event.Aggregate.ID == "3" && event.Attempt == 1 {
			return errPlanned
		}
		next[event.Aggregate.ID]++
		return nil
	})
	for n := range each {
		for a := range aggregates {
			w.emit(fmt.Sprint(a), n)
		}
	}
	w.run(c, func(config *kafka.ConsumeConfig) { config.Concurrency = aggregates })
	w.done()
	if handled := w.seen.count(anyEvent, consumer.Handled); handled != aggregates*each {
		t.Errorf("%d of %d were handled", handled, aggregates*each)
	}
}

// TestDeadLetters: what will never be handled, and what failed too often, is a record of the dead letters as it was,
// with who, why and where. What is behind it of its aggregate goes on.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 1)
	bad, failing := w.message("bad", 1), w.message("failing", 1)
	c := w.consumer(consumer.Config{MaxAttempts: 2}, func(_ context.Context, event *consumer.Event, _ license) error {
		switch event.ID {
		case bad.ID:
			return consumer.Poison(errPlanned)
		case failing.ID:
			return errPlanned
		default:
			return nil
		}
	})
	w.publish(bad)
	w.publish(failing)
	behind := w.emit("failing", 2)
	garbage := w.message("garbage", 1)
	garbage.Body = []byte("no envelope")
	w.publish(garbage)
	w.run(c)
	w.done()
	if w.seen.count(behind, consumer.Handled) != 1 {
		t.Error("what is behind a dead letter was not handled")
	}
	letters := map[string]map[string]string{}
	for _, letter := range w.deadLetters(3) {
		attributes := kafka.Attributes(letter.Headers)
		letters[attributes["event_id"]] = attributes
		if attributes["note"] != " kept as it is " || attributes[kafka.AttributeConsumer] != w.name ||
			attributes[kafka.AttributeTopic] != w.topic || attributes[kafka.AttributePartition] != "0" ||
			!strings.HasPrefix(string(letter.Key), "license/") || attributes[kafka.AttributeReason] == "" {
			t.Errorf("a letter has the key %s and %v", letter.Key, attributes)
		}
	}
	for id, attempts := range map[outbox.ID]string{bad.ID: "1", failing.ID: "2", garbage.ID: "1"} {
		if got := letters[id.String()][kafka.AttributeAttempts]; got != attempts {
			t.Errorf("the letter of %s has %q attempts, want %s", id, got, attempts)
		}
	}
	if n := w.countLetters(); n != 3 {
		t.Errorf("%d dead letters, want 3", n)
	}
}

// TestStop: a loop that is told to stop finishes the handler that runs, begins nothing, and commits what is done; the
// next one begins behind that.
func TestStop(t *testing.T) {
	t.Parallel()
	const events = 20
	w := newEnv(t, 1)
	running, release := make(chan struct{}, events), make(chan struct{})
	c := w.consumer(consumer.Config{}, func(context.Context, *consumer.Event, license) error {
		running <- struct{}{}
		<-release
		return nil
	})
	for n := range events {
		w.emit("a", n)
	}
	let := w.letting(release)
	stop := w.run(c)
	eventually.Receive(t, "a handler runs", running)
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	let() // the loop may have heard of its end already
	<-stopped
	handled := w.seen.count(anyEvent, consumer.Handled)
	if at := w.committed()[0]; at != int64(handled) {
		t.Errorf("%d were handled, and %d are committed", handled, at)
	}
	w.run(c)
	w.done()
	if n := w.seen.count(anyEvent, consumer.Handled); n != events {
		t.Errorf("%d of %d were handled", n, events)
	}
}

// TestCheckConsumer: what is missing is said before anything is received, all at once.
func TestCheckConsumer(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 1)
	c := w.consumer(consumer.Config{}, func(context.Context, *consumer.Event, license) error { return nil })
	config := kafka.ConsumeConfig{Topics: []string{w.topic}, DeadLetters: w.letters}
	if err := kafka.CheckConsumer(w.patient(), cluster(), c, config); err != nil {
		t.Errorf("all is well: %v", err)
	}
	config.Topics = append(config.Topics, "no-such-topic")
	config.DeadLetters = "no-such-letters"
	for what, check := range map[string]func() error{
		"CheckConsumer": func() error { return kafka.CheckConsumer(w.patient(), cluster(), c, config) },
		"Consume":       func() error { return kafka.Consume(w.patient(), cluster(), c, config) },
	} {
		err := check()
		for _, want := range []string{"no-such-topic", "no-such-letters for dead letters"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s says nothing about %s: %v", what, want, err)
			}
		}
	}
	nowhere := kafka.Cluster{Brokers: []string{"127.0.0.1:1"}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- kafka.Consume(ctx, nowhere, c, kafka.ConsumeConfig{Topics: []string{"a"}, DeadLetters: "b"})
	}()
	cancel()
	if err := eventually.Receive(t, "the loop without a cluster ends", ended); err != nil {
		t.Errorf("an outage ended the loop: %v", err)
	}
}
