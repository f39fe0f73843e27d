package consumer_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

func deliverOf(t *testing.T, s *env, eventType string, attempt int) consumer.Verdict {
	t.Helper()
	attributes := attributesOf(outbox.NewID())
	attributes["event_type"] = eventType
	return s.Process(t.Context(), attributes, []byte("not even JSON"), attempt)
}

// A type without a handler may be one that another process knows: it is given back however often it comes, later and
// later, and the log says so once a type.
func TestUnknownTypesAreGivenBack(t *testing.T) {
	t.Parallel()
	s := newEnv(t, consumer.Config{}, func(context.Context, *consumer.Event) error {
		t.Error("the handler was run")
		return nil
	})
	for attempt, after := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 7: time.Minute, 1000: time.Minute,
	} {
		got := deliverOf(t, s, "another.happened", attempt)
		if got.Outcome != consumer.Unknown || got.Acknowledge() || got.After != after ||
			!strings.Contains(got.Reason, "Ignore") {
			t.Errorf("at attempt %d: got %+v", attempt, got)
		}
	}
	deliverOf(t, s, "a.third", 1)
	if got := s.outcomes(); len(got) != 6 ||
		slices.ContainsFunc(got, func(o consumer.Outcome) bool { return o != consumer.Unknown }) {
		t.Errorf("observed %v", got)
	}
	if log := s.log.String(); strings.Count(log, "level=WARN") != 2 || strings.Count(log, "level=DEBUG") != 4 {
		t.Errorf("the log is %s", log)
	}
}

// What is named is acknowledged and not looked at.
func TestIgnoredTypesAreAcknowledged(t *testing.T) {
	t.Parallel()
	never := func(context.Context, *consumer.Event) error {
		t.Error("the handler was run")
		return nil
	}
	c, err := consumer.New(consumer.Config{Name: "tester", Logger: slog.New(slog.DiscardHandler)},
		consumer.OnType(happened, never), consumer.Ignore("a", "b"), consumer.Ignore(), consumer.Ignore("c", "a"))
	if err != nil {
		t.Fatal(err)
	}
	for eventType, want := range map[string]consumer.Outcome{
		"a": consumer.Ignored, "b": consumer.Ignored, "c": consumer.Ignored, "d": consumer.Unknown,
	} {
		got := c.Process(t.Context(), map[string]string{"event_id": outbox.NewID().String(), "event_type": eventType},
			[]byte("not even JSON"), 1)
		if got.Outcome != want || got.Acknowledge() != (want == consumer.Ignored) {
			t.Errorf("%s: got %+v", eventType, got)
		}
	}
	if got := c.Types(); !slices.Equal(got, []string{happened}) {
		t.Errorf("the types with a handler are %v", got)
	}
}

func TestWhatCannotBeIgnored(t *testing.T) {
	t.Parallel()
	for want, rules := range map[string][]consumer.Rule{
		"has a handler and is ignored": {consumer.OnType("a", answer(nil)), consumer.Ignore("b", "a")},
		"has no name":                  {consumer.OnType("a", answer(nil)), consumer.Ignore("")},
		"no event type has a handler":  {consumer.Ignore("a")},
	} {
		if _, err := consumer.New(consumer.Config{Name: "tester"}, rules...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Events of unknown types say nothing about the handlers' database, and are not handled either: a stall goes on.
func TestUnknownTypesAreNoFailures(t *testing.T) {
	t.Parallel()
	var failing error
	s := newEnv(t, consumer.Config{}, func(context.Context, *consumer.Event) error { return failing })
	stopped, stop := context.WithCancel(t.Context())
	stop()
	deliver := func() consumer.Outcome { return s.Process(stopped, attributesOf(outbox.NewID()), nil, 1).Outcome }
	for range 5 {
		deliverOf(t, s, "another.happened", 1)
	}
	failing = errFailed
	var got []consumer.Outcome
	for range 4 {
		got = append(got, deliver())
		deliverOf(t, s, "another.happened", 1)
	}
	if want := []consumer.Outcome{
		consumer.Failed, consumer.Failed, consumer.Delayed, consumer.Delayed,
	}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Deliveries to processes that did not know the type are counted by the broker and are no attempts: where the event
// then fails, it is not given up at once.
func TestDeliveriesThatWereGivenBackAreNoFailures(t *testing.T) {
	t.Parallel()
	for maxAttempts, want := range map[int][]consumer.Outcome{
		0: {consumer.Failed, consumer.Failed, consumer.Poisoned, consumer.Failed},
		2: {consumer.Failed, consumer.Poisoned, consumer.Failed, consumer.Poisoned},
		1: {consumer.Poisoned, consumer.Poisoned, consumer.Poisoned, consumer.Poisoned},
	} {
		s := newEnv(t, consumer.Config{MaxAttempts: maxAttempts}, answer(errFailed))
		id := outbox.NewID()
		for attempt := range want {
			s.Process(t.Context(), attributesOf(id), nil, 50+attempt)
		}
		if got := s.outcomes(); !slices.Equal(got, want) {
			t.Errorf("MaxAttempts %d: got %v, want %v", maxAttempts, got, want)
		}
	}
}
