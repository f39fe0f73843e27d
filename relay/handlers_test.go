package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// newHandlers makes handlers of these routes.
func newHandlers(t testing.TB, handlers ...consumer.Rule) publish.Publisher {
	t.Helper()
	c, err := consumer.New(consumer.Config{Name: "tester", Logger: slog.New(slog.DiscardHandler)}, handlers...)
	if err != nil {
		t.Fatal(err)
	}
	return Handlers(c)
}

// handling makes the handlers of one type, with this one.
func handling(t testing.TB, handle func(ctx context.Context) error) publish.Publisher {
	t.Helper()
	return newHandlers(t, consumer.OnType("order_placed", func(ctx context.Context, _ *consumer.Event) error {
		return handle(ctx)
	}))
}

// RL-8, RL-16: what a handler answers decides what becomes of its event, and not what its error wraps.
func TestWhatAHandlersAnswerMeans(t *testing.T) {
	t.Parallel()
	cause := errors.New("because")
	for name, test := range map[string]struct {
		answer error
		want   core.Class
		reason string
	}{
		"nothing":                 {nil, core.Acknowledged, ""},
		"handled before":          {fmt.Errorf("inside: %w", consumer.ErrDuplicate), core.Acknowledged, ""},
		"an error":                {cause, core.Rejected, ""},
		"a deadline":              {context.DeadlineExceeded, core.Rejected, ""},
		"poison":                  {consumer.Poison(cause), core.Terminal, publish.ReasonRejected},
		"poison, wrapped":         {fmt.Errorf("inside: %w", consumer.Poison(cause)), core.Terminal, publish.ReasonRejected},
		"a delay":                 {&consumer.DelayError{After: time.Hour, Err: cause}, core.RouteFault, ""},
		"a broker's outage":       {&publish.TopicError{Err: cause}, core.Rejected, ""},
		"a broker's refusal":      {&publish.TerminalError{Reason: publish.ReasonTooLarge, Err: cause}, core.Rejected, ""},
		"not sent, by a broker":   {publish.ErrNotSent, core.Rejected, ""},
		"poison of not sent":      {consumer.Poison(publish.ErrNotSent), core.Terminal, publish.ReasonRejected},
		"a delay for a rejection": {&consumer.DelayError{Err: &publish.RejectedError{Err: cause}}, core.RouteFault, ""},
	} {
		s := newTestSender(t, handling(t, func(context.Context) error { return test.answer }))
		outcome := publishes(t, s, stored())
		if outcome.Class != test.want || outcome.Reason != test.reason || outcome.RetryAfter != 0 || outcome.Contract {
			t.Errorf("%s: got %+v", name, outcome)
		}
		if test.answer != nil && test.want != core.Acknowledged && outcome.Detail == "" {
			t.Errorf("%s: nothing says why", name)
		}
	}
}

// A handler that panics has failed; the process and the other events go on, and nothing that it quotes gets out.
func TestAHandlerThatPanicsHasFailed(t *testing.T) {
	t.Parallel()
	panics := true
	s := newTestSender(t, handling(t, func(context.Context) error {
		if panics {
			panic("password=hunter2\x00")
		}
		return nil
	}))
	event := stored()
	outcome := publishes(t, s, event)
	if outcome.Class != core.Rejected || !strings.Contains(outcome.Detail, "panicked") ||
		strings.Contains(outcome.Detail, "hunter2") {
		t.Errorf("got %+v", outcome)
	}
	panics = false
	if outcome := publishes(t, s, event); outcome.Class != core.Acknowledged {
		t.Errorf("the same event, later: got %+v", outcome)
	}
}

// K11: a deployment whose handlers all fail does not kill the backlog.
func TestHandlersThatAllFailChargeNobodyForLong(t *testing.T) {
	t.Parallel()
	s := newTestSender(t, handling(t, func(context.Context) error { panic("no") }))
	charged := 0
	for range 100 {
		if outcome := publishes(t, s, stored()); outcome.Class == core.Rejected {
			charged++
		} else if outcome.Class != core.RouteFault {
			t.Fatalf("got %+v", outcome)
		}
	}
	if charged != 2 {
		t.Errorf("%d of 100 events were charged, want the first two", charged)
	}
}

// A handler's context ends at the publish deadline. That of a relay which gives up is no failure of the event.
func TestAHandlerEndsWithThePublish(t *testing.T) {
	t.Parallel()
	publisher := handling(t, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	message := &publish.Message{
		Attributes: map[string]string{"event_id": outbox.NewID().String(), "event_type": "order_placed"},
	}
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := publisher.Publish(late, message); publish.ClassOf(err) != "rejected" {
		t.Errorf("at the deadline: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := publisher.Publish(stopped, message); publish.ClassOf(err) != "topic_fault" {
		t.Errorf("when the relay gives up: %v", err)
	}
}

// S3: each type has its handler, which gets the event as a consumer's does.
func TestEachTypeHasItsHandler(t *testing.T) {
	t.Parallel()
	type order struct {
		N int `json:"n"`
	}
	var handled []string
	publisher := newHandlers(t,
		consumer.On(outbox.Define[order](outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: "orders"}),
			func(_ context.Context, event *consumer.Event, payload order) error {
				handled = append(handled, fmt.Sprintf("%s of %s, %d, number %d", event.Type, event.Key(), payload.N, event.Seq))
				return nil
			}),
		consumer.OnType("order_sent", func(_ context.Context, event *consumer.Event) error {
			handled = append(handled, event.Type)
			return nil
		}),
		consumer.Ignore("order_seen"))
	s := newTestSender(t, publisher)
	s.unchecked = true // the registry of the tests has one type
	for _, eventType := range []string{"order_seen", "order_sent", "order_placed"} {
		outcome := publishes(t, s, stored(func(e *core.Event) {
			e.Type, e.Seq = eventType, 42
			e.Payload = []byte(strings.Replace(string(e.Payload), `"data":{}`, `"data":{"n":7}`, 1))
		}))
		if outcome.Class != core.Acknowledged {
			t.Errorf("%s: got %+v", eventType, outcome)
		}
	}
	if got := strings.Join(handled, "; "); got != "order_sent; order_placed of default/order/7, 7, number 42" {
		t.Errorf("handled: %s", got)
	}
}

// RG-4, RG-6: a type of the registry that no handler takes is an error at the start, by name.
func TestHandlersMustTakeEveryType(t *testing.T) {
	t.Parallel()
	var contracts []outbox.AnyContract
	for i := range 14 {
		contracts = append(contracts, outbox.Define[struct{}](outbox.Contract{
			Type: fmt.Sprintf("type_%02d", i), Aggregate: "order", Topic: "orders",
		}))
	}
	nothing := func(context.Context, *consumer.Event) error { return nil }
	for says, publisher := range map[string]publish.Publisher{
		"no handler for type_01, type_02, type_03": newHandlers(t, consumer.OnType("type_00", nothing)),
		"type_11 and 2 more: give each": newHandlers(t, consumer.OnType("type_00", nothing),
			consumer.Ignore("type_01")),
		"relay.Handlers of no consumer": Handlers(nil),
	} {
		config := complete(t)
		config.Publisher = publisher
		var err error
		if config.Registry, err = outbox.NewRegistry(contracts...); err != nil {
			t.Fatal(err)
		}
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in: %v", says, err)
		}
	}
	config := complete(t)
	for _, handler := range []consumer.Rule{consumer.OnType("order_placed", nothing), consumer.Ignore("order_placed")} {
		config.Publisher = newHandlers(t, handler, consumer.OnType("of_another_relay", nothing))
		if _, err := New(config); err != nil {
			t.Error(err)
		}
	}
	config.Registry, config.Publisher = nil, newHandlers(t, consumer.OnType("order_placed", nothing))
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), "the Registry is missing") {
		t.Errorf("without a registry: %v", err)
	}
}

// RG-4: where the start could not see it, an event without a handler is neither charged nor dead nor acknowledged.
func TestAnEventWithoutAHandlerWaits(t *testing.T) {
	t.Parallel()
	inner := newHandlers(t, consumer.OnType("order_sent", func(context.Context, *consumer.Event) error { return nil }))
	s := newTestSender(t, publish.PublisherFunc(inner.Publish))
	if outcome := publishes(t, s, stored()); outcome.Class != core.RouteFault ||
		!strings.Contains(outcome.Detail, "no handler") {
		t.Errorf("got %+v", outcome)
	}
}
