package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

const happened = "thing.happened"

var errFailed = errors.New("the mail server is down")

// attributesOf are those of a message about an event.
func attributesOf(id outbox.ID) map[string]string {
	return map[string]string{"event_id": id.String(), "event_type": happened}
}

// env is a consumer with one handler, what it observed and what it logged.
type env struct {
	*consumer.Consumer

	observed []consumer.Observation // by one delivery at a time
	log      bytes.Buffer
}

func newEnv(t *testing.T, config consumer.Config, handle consumer.Handler) *env {
	t.Helper()
	s := &env{}
	config.Name = "tester"
	config.Logger = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	config.Observe = func(_ context.Context, observation consumer.Observation) {
		s.observed = append(s.observed, observation)
	}
	var err error
	if s.Consumer, err = consumer.New(config, consumer.OnType(happened, handle)); err != nil {
		t.Fatal(err)
	}
	return s
}

// deliver has a new event delivered.
func (s *env) deliver(t *testing.T, attempt int) consumer.Verdict {
	t.Helper()
	return s.Process(t.Context(), attributesOf(outbox.NewID()), nil, attempt)
}

func answer(err error) consumer.Handler {
	return func(context.Context, *consumer.Event) error { return err }
}

// outcomes are those that were observed.
func (s *env) outcomes() (outcomes []consumer.Outcome) {
	for _, observation := range s.observed {
		outcomes = append(outcomes, observation.Outcome)
	}
	return outcomes
}

// Every answer of a handler leads to its outcome, also wrapped, and the verdict, the observer and the log agree.
func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer  error
		attempt int
		want    consumer.Verdict
		level   string
	}{
		{nil, 1, consumer.Verdict{Outcome: consumer.Handled}, "DEBUG"},
		{nil, 1000, consumer.Verdict{Outcome: consumer.Handled}, "DEBUG"},
		{consumer.ErrDuplicate, 1, consumer.Verdict{Outcome: consumer.Duplicate}, "DEBUG"},
		{
			consumer.Poison(errFailed), 1, consumer.Verdict{
				Outcome: consumer.Poisoned, Reason: "consumer: never to be handled: the mail server is down",
			}, "ERROR",
		},
		{errFailed, 0, consumer.Verdict{Outcome: consumer.Failed, After: time.Second, Reason: errFailed.Error()}, "WARN"},
		{errFailed, 1, consumer.Verdict{Outcome: consumer.Failed, After: time.Second, Reason: errFailed.Error()}, "WARN"},
		{errFailed, 9, consumer.Verdict{Outcome: consumer.Failed, After: time.Minute, Reason: errFailed.Error()}, "WARN"},
		// for the first time here
		{errFailed, 10, consumer.Verdict{Outcome: consumer.Failed, After: time.Minute, Reason: errFailed.Error()}, "WARN"},
	} {
		s := newEnv(t, consumer.Config{}, answer(test.answer))
		if got := s.deliver(t, test.attempt); got != test.want {
			t.Errorf("%v at attempt %d: got %+v", test.answer, test.attempt, got)
		}
		observed := s.observed[0]
		if len(s.observed) != 1 || observed.Outcome != test.want.Outcome || observed.Consumer != "tester" ||
			observed.Event.Attempt != test.attempt ||
			!errors.Is(observed.Err, test.answer) {
			t.Errorf("%v: observed %+v", test.answer, s.observed)
		}
		if log := s.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "level="+test.level) ||
			!strings.Contains(log, "outcome="+string(test.want.Outcome)) ||
			!strings.Contains(log, "event_id="+observed.Event.ID.String()) {
			t.Errorf("%v: the log is %s", test.answer, log)
		}
		acknowledged := test.want.Outcome == consumer.Handled || test.want.Outcome == consumer.Duplicate
		if test.want.Acknowledge() != acknowledged {
			t.Errorf("%s is acknowledged: %t", test.want.Outcome, !acknowledged)
		}
		if test.answer != nil {
			wrapped := newEnv(t, consumer.Config{}, answer(fmt.Errorf("inside: %w", test.answer)))
			if got := wrapped.deliver(t, test.attempt); got.Outcome != test.want.Outcome {
				t.Errorf("%v, wrapped: got %+v", test.answer, got)
			}
		}
	}
}

func TestWaitingGetsLonger(t *testing.T) {
	t.Parallel()
	s := newEnv(t, consumer.Config{MaxAttempts: 100}, answer(errFailed))
	for attempt, want := range map[int]int{-1: 1, 0: 1, 1: 1, 2: 2, 3: 4, 6: 32, 7: 60, 8: 60, 50: 60, 99: 60} {
		// one id, or they would be taken for an outage
		if got := s.Process(t.Context(), attributesOf(outbox.ID{1}), nil, attempt); got.After !=
			time.Duration(want)*time.Second {
			t.Errorf("after attempt %d: got %s, want %d s", attempt, got.After, want)
		}
	}
}

func TestWhatPanicsHasFailed(t *testing.T) {
	t.Parallel()
	const canary = "CaNaRy"
	s := newEnv(t, consumer.Config{}, func(context.Context, *consumer.Event) error {
		panic(fmt.Sprintf("no such row: %q", canary))
	})
	if got := s.deliver(t, 1); got.Outcome != consumer.Failed || !strings.Contains(got.Reason, "panicked") ||
		strings.Contains(got.Reason, canary) {
		t.Errorf("got %+v", got)
	}
	if log := s.log.String(); !strings.Contains(log, "consumer_test.go") || strings.Contains(log, canary) {
		t.Errorf("the log does not say where it was, or what with: %s", log)
	}
	once := newEnv(t, consumer.Config{MaxAttempts: 1}, func(context.Context, *consumer.Event) error { panic(canary) })
	if got := once.deliver(t, 1); got.Outcome != consumer.Poisoned {
		t.Errorf("at the bound: got %+v", got)
	}
}

// What is sent is nobody's to read in a log, whatever becomes of it.
func TestNothingOfAPayloadIsLogged(t *testing.T) {
	t.Parallel()
	const canary = "CaNaRy"
	type payload struct {
		Number int `json:"number"`
	}
	contract := outbox.Define[payload](outbox.Contract{Type: happened, Aggregate: "thing", Topic: "things"})
	id := outbox.NewID()
	body := func(data string) []byte {
		return fmt.Appendf(nil, `{"version":1,"eventId":%q,"occurredAt":"2026-01-02T03:04:05Z","data":%s}`, id, data)
	}
	var log bytes.Buffer
	for _, handled := range []error{
		nil, consumer.ErrDuplicate, errFailed, consumer.Poison(errFailed), fmt.Errorf("no customer %q", canary),
	} {
		c, err := consumer.New(consumer.Config{
			Name: "tester", Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		},
			consumer.On(contract, func(context.Context, *consumer.Event, payload) error { return handled }))
		if err != nil {
			t.Fatal(err)
		}
		for _, sent := range [][]byte{
			body(`{"number":1,"name":"` + canary + `"}`), body(`{"number":"` + canary + `"}`), body(`{"number":` + canary + `}`),
			[]byte(canary), body(`{"` + canary + `":{"number":"` + canary + `"}}`), []byte(`{"` + canary + `":1}`),
		} {
			if verdict := c.Process(t.Context(), attributesOf(id), sent, 1); strings.Contains(verdict.Reason, canary) {
				t.Errorf("the reason has it: %+v", verdict)
			}
		}
	}
	if strings.Count(log.String(), "\n") != 30 || strings.Contains(log.String(), canary) {
		t.Errorf("it is in the log, or the log is too short:\n%s", log.String())
	}
}

// The handler's context ends at the deadline, whatever the loop's does, and what it says then counts.
func TestTheDeadline(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := newEnv(t, consumer.Config{Deadline: deadline}, func(ctx context.Context, _ *consumer.Event) error {
				<-ctx.Done()
				return ctx.Err()
			})
			stopping, stop := context.WithCancel(t.Context())
			stop()
			began := time.Now()
			got := s.Process(stopping, attributesOf(outbox.NewID()), nil, 1)
			if deadline == 0 {
				deadline = 30 * time.Second
			}
			if took := time.Since(began); took != deadline || got.Outcome != consumer.Failed || s.observed[0].Took != deadline {
				t.Errorf("got %+v after %s", got, took)
			}
			<-time.After(time.Hour)
			synctest.Wait()
			if strings.Contains(s.log.String(), "after its deadline") {
				t.Error("it is blamed for what it has not done")
			}
		})
	}
}

// A handler that does not heed its context keeps its message, and that is said.
func TestAHandlerThatGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		s := newEnv(t, consumer.Config{}, func(context.Context, *consumer.Event) error { <-leave; return nil })
		go func() {
			defer close(leave)
			<-time.After(time.Hour)
			synctest.Wait()
			if strings.Count(s.log.String(), "after its deadline") != 1 {
				t.Errorf("nothing is said, or too much: %s", s.log.String())
			}
		}()
		if got := s.deliver(t, 1); got.Outcome != consumer.Handled {
			t.Errorf("got %+v", got)
		}
	})
}

// A delayed event is handled here as soon as it can be, however long that takes and whatever the attempt.
func TestADelayIsWaitedForInPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const delays = 500
		tries := 0
		s := newEnv(t, consumer.Config{}, func(context.Context, *consumer.Event) error {
			if tries++; tries <= delays {
				return fmt.Errorf("the guard: %w", &consumer.DelayError{After: 20 * time.Second, Err: errFailed})
			}
			return nil
		})
		began := time.Now()
		if got := s.deliver(t, 10); got.Outcome != consumer.Handled || time.Since(began) != delays*20*time.Second {
			t.Errorf("got %+v after %s", got, time.Since(began))
		}
		if len(s.observed) != delays+1 || s.observed[delays-1].Outcome != consumer.Delayed {
			t.Errorf("%d observations", len(s.observed))
		}
		if log := s.log.String(); strings.Count(log, "level=INFO") != 1 {
			t.Errorf("an outage fills the log: %d bytes", len(log))
		}
	})
}

// A handler that forgets to say how long does not run without a pause.
func TestADelayIsNeverNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s := newEnv(t, consumer.Config{}, answer(&consumer.DelayError{}))
		got := s.Process(ctx, attributesOf(outbox.NewID()), nil, 1)
		if got.Outcome != consumer.Delayed || got.Reason == "" || len(s.observed) > 101 {
			t.Errorf("got %+v after %d tries", got, len(s.observed))
		}
	})
}

// When the loop stops, a delay has an end at once, and the message is given back and not charged.
func TestStoppingEndsADelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		began := time.Now()
		s := newEnv(t, consumer.Config{}, func(ctx context.Context, _ *consumer.Event) error {
			if err := ctx.Err(); err != nil {
				t.Errorf("the handler was run without a chance: %v", err)
			}
			return &consumer.DelayError{After: time.Hour, Err: errFailed}
		})
		got := s.Process(ctx, attributesOf(outbox.NewID()), nil, 10)
		if got.Outcome != consumer.Delayed || got.Acknowledge() || time.Since(began) != 90*time.Minute ||
			len(s.observed) != 2 {
			t.Errorf("got %+v after %s and %d tries", got, time.Since(began), len(s.observed))
		}
	})
}

// The first wrap is the outermost, each is told the consumer's name, and each handler has them.
func TestWraps(t *testing.T) {
	t.Parallel()
	var calls []string
	wrap := func(own string) consumer.Middleware {
		return func(name string, next consumer.Handler) consumer.Handler {
			return func(ctx context.Context, event *consumer.Event) error {
				calls = append(calls, own+" of "+name)
				return next(ctx, event)
			}
		}
	}
	handle := func(_ context.Context, event *consumer.Event) error {
		calls = append(calls, event.Type)
		return nil
	}
	c, err := consumer.New(consumer.Config{
		Name: "tester", Middleware: []consumer.Middleware{wrap("span"), wrap("guard")}, Logger: slog.New(slog.DiscardHandler),
	},
		consumer.OnType("a", handle), consumer.OnType("b", handle))
	if err != nil {
		t.Fatal(err)
	}
	for _, eventType := range []string{"b", "a"} {
		c.Process(t.Context(), map[string]string{"event_id": outbox.NewID().String(), "event_type": eventType}, nil, 1)
	}
	if got := c.Types(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the types are %q", got)
	}
	want := []string{"span of tester", "guard of tester", "b", "span of tester", "guard of tester", "a"}
	if !slices.Equal(calls, want) {
		t.Errorf("got %q", calls)
	}
}

func TestNewSaysEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := consumer.New(consumer.Config{Name: "A b", Deadline: -1}, consumer.Rule{},
		consumer.OnType("twice", answer(nil)), consumer.OnType("twice", answer(nil)), consumer.OnType("none", nil))
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, problem := range []string{`"A b"`, "Deadline", `type ""`, "twice", `"none"`} {
		if !strings.Contains(err.Error(), problem) {
			t.Errorf("nothing about %s in: %v", problem, err)
		}
	}
	if _, err := consumer.New(consumer.Config{Name: "tester"}); err == nil {
		t.Error("a consumer of nothing was taken")
	}
	if _, err := consumer.New(consumer.Config{Name: "tester", MaxAttempts: -1}, consumer.OnType("a", answer(nil))); err ==
		nil {
		t.Error("less than no attempts were taken")
	}
	c, err := consumer.New(consumer.Config{Name: "order-mailer.v2_x"}, consumer.OnType("a", answer(nil)))
	if err != nil || c.Name() != "order-mailer.v2_x" || c.Logger() == nil || c.MaxAttempts() != 10 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestPoisonOfNothingIsNothing(t *testing.T) {
	t.Parallel()
	if err := consumer.Poison(nil); err != nil {
		t.Errorf("got %v", err)
	}
	for _, err := range []error{consumer.Poison(errFailed), &consumer.DelayError{Err: errFailed}} {
		if !errors.Is(err, errFailed) {
			t.Errorf("%v: the reason is lost", err)
		}
	}
}

// A test message is acknowledged, and no handler hears of it, not even one that takes every type there is here.
func TestATestMessageIsIgnored(t *testing.T) {
	t.Parallel()
	c, err := consumer.New(consumer.Config{Name: "mailer"}, consumer.OnType("order_placed",
		func(context.Context, *consumer.Event) error { t.Error("it was handled"); return nil }))
	if err != nil {
		t.Fatal(err)
	}
	verdict := c.Process(t.Context(), map[string]string{
		"event_id": outbox.NewID().String(), "event_type": outbox.TestType, "test": "true",
	}, []byte(`{}`), 1)
	if verdict.Outcome != consumer.Ignored || !verdict.Acknowledge() {
		t.Errorf("the verdict is %+v", verdict)
	}
}
