package otel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/telemetry/otel"
)

// received is a message as a consumer reads it.
func received(t testing.TB, headers map[string]string) *consumer.Event {
	t.Helper()
	sent := message(headers)
	sent.Attributes["event_type"], sent.Attributes["aggregate_type"] = sent.EventType, sent.AggregateType
	event, err := consumer.Read(sent.Attributes, sent.Body)
	if err != nil {
		t.Fatal(err)
	}
	event.Attempt = 3
	return event
}

func TestProcess(t *testing.T) {
	t.Parallel()
	cause := errors.New(canary)
	for class, answer := range map[string]error{
		"": nil, "failed": cause, "poisoned": consumer.Poison(cause), "delayed": &consumer.DelayError{Err: cause},
		"duplicate": consumer.ErrDuplicate,
	} {
		if answer != nil {
			answer = fmt.Errorf("%s: %w", canary, answer)
		}
		spans, provider := recorder(t)
		event := received(t, map[string]string{"traceparent": created, "tracestate": "a=b"})
		var inside api.SpanContext
		handler := otel.Process(otel.Config{
			System: "nats", Provider: provider,
		})("billing", func(ctx context.Context, got *consumer.Event) error {
			inside = api.SpanContextFromContext(ctx)
			if got != event {
				t.Error("it is another event")
			}
			return answer
		})
		if err := handler(t.Context(), event); !errors.Is(err, answer) {
			t.Errorf("it returned %v", err)
		}
		wantProcess(t, spans.GetSpans(), event, class)
		if !inside.Equal(spans.GetSpans()[0].SpanContext) {
			t.Error("the handler does not see the span")
		}
	}
}

// wantProcess checks the one span of an event with the trace "created".
func wantProcess(t *testing.T, spans tracetest.SpanStubs, event *consumer.Event, class string) {
	t.Helper()
	wantNoSecret(t, spans)
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	span := spans[0]
	want := map[attribute.Key]any{
		"messaging.system": "nats", "messaging.operation.name": "process", "messaging.operation.type": "process",
		"messaging.consumer.group.name": "billing",
		"messaging.message.id":          event.ID.String(), "messaging.message.body.size": int64(len(event.Body)),
		"posthaste.event.type": "order_created", "posthaste.aggregate.type": "order", "posthaste.event.attempt": int64(3),
	}
	status := codes.Unset
	switch class {
	case "":
	case "duplicate":
		want["posthaste.event.duplicate"], class = true, ""
	default:
		want["error.type"], status = class, codes.Error
	}
	if !maps.Equal(attributes(span), want) || span.Name != "process billing" || span.SpanKind != api.SpanKindConsumer ||
		span.Status.Code != status || span.Status.Description != class {
		t.Errorf("%s: the span is %+v", class, span)
	}
	if len(span.Links) != 1 || traceParent(span.Links[0].SpanContext) != created || traceParent(span.Parent) != created ||
		span.Links[0].SpanContext.TraceState().Get("a") != "b" {
		t.Errorf("%s: the links are %+v, the parent is %+v", class, span.Links, span.Parent)
	}
}

// A handler that panics does so still, and its span says it without its words.
func TestAPanicEndsTheSpanOfAHandler(t *testing.T) {
	t.Parallel()
	spans, provider := recorder(t)
	handler := otel.Process(otel.Config{Provider: provider})("billing", func(context.Context, *consumer.Event) error {
		panic(canary)
	})
	func() {
		defer func() {
			if recover() != canary {
				t.Error("the panic is lost")
			}
		}()
		_ = handler(t.Context(), received(t, nil))
	}()
	ended := spans.GetSpans()
	wantNoSecret(t, ended)
	if got := attributes(ended[0]); len(ended) != 1 || got["error.type"] != "panic" ||
		got["messaging.system"] != "posthaste" {
		t.Errorf("the spans are %+v", ended)
	}
}

// Whether an event is sampled was decided when it was created, and what is no trace is none.
func TestTheTraceOfAHandler(t *testing.T) {
	t.Parallel()
	for parent, want := range map[string]int{
		created: 1, created[:53] + "00": 0, "": 1, "x": 1, strings.ToUpper(created): 1,
	} {
		spans, provider := recorder(t, trace.WithSampler(trace.ParentBased(trace.AlwaysSample())))
		handler := otel.Process(otel.Config{Provider: provider})("billing", func(context.Context, *consumer.Event) error {
			return nil
		})
		if err := handler(t.Context(), received(t, map[string]string{"traceparent": parent})); err != nil {
			t.Error(err)
		}
		ended := spans.GetSpans()
		if len(ended) != want || want == 1 && (len(ended[0].Links) == 1) != (parent == created) {
			t.Errorf("%q: the spans are %+v", parent, ended)
		}
	}
}
