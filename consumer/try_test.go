package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

// try has an event tried.
func (s *env) try(ctx context.Context, id outbox.ID, attempt int) consumer.Verdict {
	return s.Try(ctx, attributesOf(id), nil, attempt)
}

// Every answer leads to its outcome after one run and without a wait, however often the event was tried before.
func TestTryRunsTheHandlerOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer error
		want   consumer.Outcome
	}{
		{nil, consumer.Handled},
		{consumer.ErrDuplicate, consumer.Duplicate},
		{&consumer.DelayError{After: time.Hour, Err: errFailed}, consumer.Delayed},
		{consumer.Poison(errFailed), consumer.Poisoned},
		{errFailed, consumer.Failed},
		{fmt.Errorf("inside: %w", consumer.Poison(errFailed)), consumer.Poisoned},
	} {
		for _, attempt := range []int{0, 1, 10, 1000} {
			synctest.Test(t, func(t *testing.T) {
				s := newEnv(t, consumer.Config{MaxAttempts: 1}, answer(test.answer))
				began := time.Now()
				got := s.try(t.Context(), outbox.NewID(), attempt)
				if got.Outcome != test.want || time.Since(began) != 0 || len(s.observed) != 1 {
					t.Errorf("%v, attempt %d: got %+v after %s and %d runs", test.answer, attempt, got, time.Since(began),
						len(s.observed))
				}
				if got.Acknowledge() != (got.Reason == "") {
					t.Errorf("%v: the reason is %q", test.answer, got.Reason)
				}
			})
		}
	}
}

// What has no handler is told apart from what is ignored and from what is no event, without a run.
func TestTryWithoutAHandler(t *testing.T) {
	t.Parallel()
	c, err := consumer.New(consumer.Config{Name: "tester"}, consumer.OnType(happened, answer(nil)),
		consumer.Ignore("seen"))
	if err != nil {
		t.Fatal(err)
	}
	for eventType, want := range map[string]consumer.Outcome{
		happened: consumer.Handled, "seen": consumer.Ignored, "new": consumer.Unknown, "": consumer.Poisoned,
	} {
		attributes := map[string]string{"event_id": outbox.NewID().String(), "event_type": eventType}
		if got := c.Try(t.Context(), attributes, nil, 1); got.Outcome != want {
			t.Errorf("%q: got %+v, want %s", eventType, got, want)
		}
		if takes := want == consumer.Handled || want == consumer.Ignored; c.Takes(eventType) != takes {
			t.Errorf("%q is taken: %t", eventType, !takes)
		}
	}
}

// A handler has what its caller gives it, or its own deadline if that is shorter. A caller that gives up charges
// nobody.
func TestTryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		deadline, timeout, cancelled, want time.Duration
		outcome                            consumer.Outcome
	}{
		{timeout: 5 * time.Second, want: 5 * time.Second, outcome: consumer.Failed},
		{timeout: time.Minute, want: 30 * time.Second, outcome: consumer.Failed},
		{deadline: time.Second, timeout: 5 * time.Second, want: time.Second, outcome: consumer.Failed},
		{timeout: 5 * time.Second, cancelled: 2 * time.Second, want: 2 * time.Second, outcome: consumer.Delayed},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newEnv(t, consumer.Config{Deadline: test.deadline}, func(ctx context.Context, _ *consumer.Event) error {
				<-ctx.Done()
				return ctx.Err()
			})
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			if test.cancelled > 0 {
				time.AfterFunc(test.cancelled, cancel)
			}
			began := time.Now()
			if got := s.try(ctx, outbox.NewID(), 1); got.Outcome != test.outcome || time.Since(began) != test.want {
				t.Errorf("%+v: got %+v after %s", test, got, time.Since(began))
			}
		})
	}
}

// When every event fails it is no event's fault; once one is handled, failures count again.
func TestTryTellsAnOutageFromABadEvent(t *testing.T) {
	t.Parallel()
	var fails error
	s := newEnv(t, consumer.Config{}, func(context.Context, *consumer.Event) error { return fails })
	first, second, third := outbox.NewID(), outbox.NewID(), outbox.NewID()
	want := func(when string, id outbox.ID, outcome consumer.Outcome) {
		t.Helper()
		if got := s.try(t.Context(), id, 1); got.Outcome != outcome {
			t.Errorf("%s: got %+v, want %s", when, got, outcome)
		}
	}
	fails = errFailed
	for range 5 {
		want("one alone", first, consumer.Failed)
	}
	want("the second", second, consumer.Failed)
	want("the third", third, consumer.Delayed)
	want("the first again", first, consumer.Delayed)
	fails = consumer.ErrDuplicate
	want("a duplicate says nothing", second, consumer.Duplicate)
	fails = errFailed
	want("still an outage", first, consumer.Delayed)
	fails = nil
	want("it is over", third, consumer.Handled)
	fails = errFailed
	want("a bad event", first, consumer.Failed)
}
