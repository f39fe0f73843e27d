package googlepubsub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func failOnce(code string) pubsubemulator.Fault {
	return pubsubemulator.Fault{Kind: pubsubemulator.KindError, Code: code, Count: 1}
}

// straggler is the order of calls in which a key is resumed too early: the first event has failed, and the
// second, which the relay was already about to hand over, comes before the relay knows.
func straggler(t *testing.T, w *env, pipeliner publish.Pipeliner) (messages []*publish.Message, late error) {
	t.Helper()
	w.inject(t, failOnce("FAILED_PRECONDITION"))
	messages = newMessages("1", 2)
	ctx := testContext(t)
	if err := enqueue(ctx, pipeliner, messages[0])[0].wait(t); err == nil {
		t.Fatal("the fault did not happen")
	}
	late = enqueue(ctx, pipeliner, messages[1])[0].wait(t)
	for _, p := range enqueue(ctx, pipeliner, messages...) {
		if err := p.wait(t); err != nil {
			t.Fatalf("event %d, handed over again: %v", p.message.Seq, err)
		}
	}
	return messages, late
}

func TestStragglerDoesNotResumeItsKey(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	messages, late := straggler(t, w, w.publisher)
	if !errors.Is(late, googlepubsub.ErrBehindFailure) {
		t.Errorf("the straggler got: %v", late)
	}
	if copies := w.expectHistory(t, messages); copies > 0 {
		t.Errorf("%d copies", copies)
	}
}

// The second event failed behind the first once, and is a straggler the second time: what the relay was
// told of the first failure says nothing about the second.
func TestStragglerOfASecondFailure(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	messages := newMessages("1", 2)
	ctx := testContext(t)
	w.inject(t, failOnce("FAILED_PRECONDITION"))
	for _, p := range enqueue(ctx, w.publisher, messages...) {
		if err := p.wait(t); err == nil {
			t.Fatal("the fault did not happen")
		}
	}
	w.inject(t, failOnce("FAILED_PRECONDITION"))
	if err := enqueue(ctx, w.publisher, messages[0])[0].wait(t); err == nil {
		t.Fatal("the second fault did not happen")
	}
	if err := enqueue(ctx, w.publisher, messages[1])[0].wait(t); !errors.Is(err, googlepubsub.ErrBehindFailure) {
		t.Errorf("the straggler got: %v", err)
	}
	sendAll(t, w.publisher, messages, 2)
	w.expectHistory(t, messages)
}

// eager is the mutant: it resumes a key as soon as it sees the failure.
type eager struct {
	publish.Pipeliner
	library *pubsub.Publisher
}

func newEager(t *testing.T, w *env) *eager {
	t.Helper()
	library := w.client.Publisher(orders)
	library.EnableMessageOrdering = true
	library.PublishSettings.DelayThreshold = time.Millisecond
	library.PublishSettings.CountThreshold = 2
	t.Cleanup(library.Stop)
	return &eager{library: library}
}

func (e *eager) Depth() int { return 100 }

func (e *eager) Enqueue(ctx context.Context, m *publish.Message, done func(error)) {
	result := e.library.Publish(ctx, &pubsub.Message{Data: m.Body, Attributes: m.Attributes, OrderingKey: m.Key})
	go func() {
		_, err := result.Get(ctx)
		if err != nil {
			e.library.ResumePublish(m.Key)
		}
		done(err)
	}()
}

func TestCheckerCatchesEarlyResume(t *testing.T) {
	t.Parallel()
	t.Run("straggler", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, googlepubsub.PublisherConfig{})
		messages, _ := straggler(t, w, newEager(t, w))
		if problems, _ := checkHistory(w.journal(t), messages); len(problems) == 0 {
			t.Error("the mutant was not found")
		}
	})
	t.Run("pipelined", func(t *testing.T) {
		t.Parallel()
		for range 10 { // two goroutines race for each failure, and one of them must win once
			w := newEnv(t, googlepubsub.PublisherConfig{})
			messages := pipelineThroughFaults(t, w, newEager(t, w))
			if problems, _ := checkHistory(w.journal(t), messages...); len(problems) > 0 {
				return
			}
		}
		t.Error("the mutant was not found")
	})
}

// sendAll hands over the events of one aggregate as the relay does: many at a time, and after a failure,
// when all are answered, from the failed one on.
func sendAll(t *testing.T, pipeliner publish.Pipeliner, messages []*publish.Message, depth int) {
	t.Helper()
	ctx := testContext(t)
	_, mutant := pipeliner.(*eager)
	for len(messages) > 0 {
		var failure error
		acknowledged := 0
		for _, p := range enqueue(ctx, pipeliner, messages[:min(depth, len(messages))]...) {
			err := p.wait(t)
			switch {
			case err == nil && failure == nil:
				acknowledged++
			case err == nil && !mutant:
				t.Errorf("%s: event %d was acknowledged behind: %v", p.message.Key, p.message.Seq, failure)
			case failure == nil:
				failure = err
			}
		}
		messages = messages[acknowledged:]
		if ctx.Err() != nil {
			t.Errorf("%d events are left: %v", len(messages), failure)
			return
		}
	}
}

// pipelineThroughFaults sends many aggregates through every kind of fault.
func pipelineThroughFaults(t *testing.T, w *env, pipeliner publish.Pipeliner) [][]*publish.Message {
	t.Helper()
	for i, code := range []string{"FAILED_PRECONDITION", "PERMISSION_DENIED", "NOT_FOUND"} {
		w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindError, Code: code, Every: 7 + i, Count: 30})
	}
	w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindDelay, Milliseconds: 5, Every: 11})
	all := make([][]*publish.Message, 20)
	var group sync.WaitGroup
	for key := range all {
		all[key] = newMessages(fmt.Sprint(key), 60)
		group.Go(func() { sendAll(t, pipeliner, all[key], 30) })
	}
	group.Wait()
	if fired := w.fired(); fired < 30 {
		t.Errorf("only %d faults were met", fired)
	}
	return all
}

func TestPipelinedOrderThroughFaults(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{CountThreshold: 2})
	messages := pipelineThroughFaults(t, w, w.publisher)
	// Those faults are answered without accepting anything, so nothing comes twice.
	if copies := w.expectHistory(t, messages...); copies > 0 {
		t.Errorf("%d copies", copies)
	}
}

// A failure fails what is behind it, keeps what is ahead, and leaves other keys alone.
func TestFailureInTheMiddle(t *testing.T) {
	t.Parallel()
	middle := &middleman{}
	w := newEnv(t, googlepubsub.PublisherConfig{}, middle.dialOption())
	ctx := testContext(t)
	messages := newMessages("1", 9)
	messages[4].Attributes["long"] = string(make([]byte, 1025))
	var terminal *publish.TerminalError
	// The last is handed over while the first are still on their way: a key that goes on too early does so then.
	end := middle.hold()
	sent := enqueue(ctx, w.publisher, messages...)
	end()
	for i, p := range sent {
		err := p.wait(t)
		switch {
		case i < 4 && err != nil:
			t.Errorf("event %d, ahead of the failure: %v", i, err)
		case i == 4 && !errors.As(err, &terminal):
			t.Errorf("the bad event: %v", err)
		case i > 4 && !errors.Is(err, googlepubsub.ErrBehindFailure):
			t.Errorf("event %d, behind the failure: %v", i, err)
		}
	}
	w.expectHistory(t, messages[:4])
	// The bad one is dead, and its contract says skip.
	for _, p := range enqueue(ctx, w.publisher, messages[5:]...) {
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
	}
	if copies := w.expectHistory(t, append(append([]*publish.Message{}, messages[:4]...), messages[5:]...)); copies > 0 {
		t.Errorf("%d events that wait behind the failure were sent before it was known", copies)
	}
}

// The broker refuses the whole request because of one message. The others are not blamed: those ahead of
// the bad one are acknowledged, those behind it wait.
func TestRequestRejectedForOneMessage(t *testing.T) {
	t.Parallel()
	for _, unordered := range []bool{false, true} {
		t.Run(fmt.Sprint("unordered ", unordered), func(t *testing.T) {
			t.Parallel()
			middle := &middleman{}
			// All of them leave as soon as they are there.
			w := newEnv(t, googlepubsub.PublisherConfig{CountThreshold: 9, DelayThreshold: time.Second, Unordered: unordered},
				middle.dialOption())
			ctx := testContext(t)
			messages := newMessages("1", 9)
			if unordered {
				for i, m := range messages {
					m.Key = fmt.Sprint("order/", i)
				}
			}
			middle.reject(messages[4])
			good := append([]*publish.Message{}, messages[:4]...)
			var rejected *publish.RejectedError
			for i, p := range enqueue(ctx, w.publisher, messages...) {
				err := p.wait(t)
				behind := i > 4 && !unordered
				switch {
				case i == 4 && !errors.As(err, &rejected):
					t.Errorf("the bad event: %v", err)
				case behind && !errors.Is(err, googlepubsub.ErrBehindFailure):
					t.Errorf("event %d, behind the bad one: %v", i, err)
				case i != 4 && !behind && err != nil:
					t.Errorf("event %d: %v", i, err)
				case i > 4 && unordered:
					good = append(good, p.message)
				}
			}
			if middle.largest() < 2 {
				t.Error("the messages did not share a request, so nothing was shown")
			}
			singles := make([][]*publish.Message, 0, len(good))
			if unordered {
				for _, m := range good {
					singles = append(singles, []*publish.Message{m})
				}
				w.expectHistory(t, singles...)
				return
			}
			w.expectHistory(t, good)
			middle.reject(nil)
			sendAll(t, w.publisher, messages[4:], 9)
			w.expectHistory(t, messages)
		})
	}
}

// A request is refused, and none of its messages is when it comes alone. The relay hears of no failure, so
// nobody but the publisher itself can resume the key.
func TestKeyGoesOnAfterARejectionOfNobody(t *testing.T) {
	t.Parallel()
	middle := &middleman{shared: true}
	w := newEnv(t, googlepubsub.PublisherConfig{CountThreshold: 5, DelayThreshold: time.Second}, middle.dialOption())
	messages := newMessages("1", 10)
	for _, part := range [][]*publish.Message{messages[:5], messages[5:]} {
		for _, p := range enqueue(testContext(t), w.publisher, part...) {
			if err := p.wait(t); err != nil {
				t.Errorf("event %d: %v", p.message.Seq, err)
			}
		}
		if middle.largest() < 2 {
			t.Error("no two messages shared a request")
		}
		middle.rejectShared(false)
	}
	if copies := w.expectHistory(t, messages); copies > 0 {
		t.Errorf("%d copies", copies)
	}
}

func TestOtherKeysGoOnWhileOneIsPaused(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	ctx := testContext(t)
	w.inject(t, failOnce("PERMISSION_DENIED"))
	paused := newMessages("paused", 5)
	for _, p := range enqueue(ctx, w.publisher, paused...) {
		if err := p.wait(t); err == nil {
			t.Fatal("no failure")
		}
	}
	others := make([][]*publish.Message, 5)
	for i := range others {
		others[i] = newMessages(fmt.Sprint(i), 20)
		for _, p := range enqueue(ctx, w.publisher, others[i]...) {
			if err := p.wait(t); err != nil {
				t.Fatalf("another key: %v", err)
			}
		}
	}
	w.expectHistory(t, others...)
	sendAll(t, w.publisher, paused, 5)
	w.expectHistory(t, slices.Concat(others, [][]*publish.Message{paused})...)
}

// Publish is called one at a time, so what is published after a failure knows of it, whatever it is.
func TestPublishAfterAFailureGoesOn(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	w.inject(t, failOnce("ABORTED"))
	messages := newMessages("1", 3)
	if err := w.publisher.Publish(testContext(t), messages[0]); err == nil {
		t.Fatal("no failure")
	}
	for _, m := range messages[1:] {
		if err := w.publisher.Publish(testContext(t), m); err != nil {
			t.Fatal(err)
		}
	}
	w.expectHistory(t, messages[1:])
}
