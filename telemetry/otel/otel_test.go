package otel_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	upstream "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/telemetry/otel"
)

// canary stands for everything that no span may show.
const canary = "hunter2"

// recorder keeps spans that ended.
func recorder(t testing.TB,
	options ...trace.TracerProviderOption,
) (*tracetest.InMemoryExporter, *trace.TracerProvider) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(append(options, trace.WithSyncer(spans))...)
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return spans, provider
}

// request is the context of a request that is traced.
func request(t testing.TB, provider *trace.TracerProvider) context.Context {
	t.Helper()
	ctx, span := provider.Tracer("test").Start(t.Context(), "request")
	t.Cleanup(func() { span.End() })
	return ctx
}

func secretEvent() outbox.Event {
	event := OrderCreated.New("aggregate-"+canary, OrderCreatedV1{OrderID: canary})
	event.TenantID, event.DedupeKey = "tenant-"+canary, "tenant-"+canary+"/1"
	event.Actor = &outbox.Actor{Type: "user", ID: canary}
	event.Headers = map[string]string{"card": canary}
	return event
}

// wantNoSecret looks into everything that a span carries.
func wantNoSecret(t testing.TB, spans tracetest.SpanStubs) {
	t.Helper()
	if len(spans) == 0 {
		t.Error("there is no span to look into")
	}
	for _, span := range spans {
		if all := fmt.Sprintf("%+v", span); strings.Contains(all, canary) || len(span.Events) > 0 {
			t.Errorf("a span shows what it must not: %s", all)
		}
	}
}

func attributes(span tracetest.SpanStub) map[attribute.Key]any {
	all := map[attribute.Key]any{}
	for _, is := range span.Attributes {
		all[is.Key] = is.Value.AsInterface()
	}
	return all
}

// traceParent writes a context as W3C has it.
func traceParent(span api.SpanContext) string {
	return fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags())
}

func TestCreate(t *testing.T) {
	t.Parallel()
	spans, provider := recorder(t)
	ctx := request(t, provider)
	first, second := secretEvent(), secretEvent()
	second.ID = outbox.NewID()
	second.DedupeKey = ""
	events, done := otel.Create(ctx, first, second)
	if len(spans.GetSpans()) != 0 {
		t.Error("the spans ended before the emit")
	}
	done([]outbox.Receipt{{ID: events[0].ID, Created: true}, {ID: events[1].ID, Created: true}}, nil)
	ended := spans.GetSpans()
	if len(ended) != 2 || len(first.Headers) != 1 || first.ID != (outbox.ID{}) {
		t.Fatalf("%d spans; the event that was given is %+v", len(ended), first)
	}
	wantNoSecret(t, ended)
	for i, span := range ended {
		want := map[attribute.Key]any{
			"messaging.system": "posthaste", "messaging.operation.name": "create", "messaging.operation.type": "create",
			"messaging.destination.name": "orders",
			"messaging.message.id":       events[i].ID.String(), "posthaste.event.type": "order_created",
			"posthaste.aggregate.type": "order",
		}
		if !maps.Equal(attributes(span), want) || span.Name != "create orders" || span.SpanKind != api.SpanKindProducer ||
			span.Status.Code != codes.Unset {
			t.Errorf("the span is %+v", span)
		}
		if span.Parent.SpanID() != api.SpanContextFromContext(ctx).SpanID() {
			t.Error("its parent is not the request")
		}
		if events[i].Headers["traceparent"] != traceParent(span.SpanContext) || events[i].Headers["card"] == "" {
			t.Errorf("the headers are %v, and the span is %s", events[i].Headers, span.SpanContext.SpanID())
		}
	}
	if events[1].ID != second.ID || events[0].ID == (outbox.ID{}) {
		t.Error("the ids are not what they should be")
	}
}

func TestWhatBecameOfTheEmit(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct {
		receipts []outbox.Receipt
		err      error
		class    string
		again    bool
	}{
		"created":   {receipts: []outbox.Receipt{{Created: true}}},
		"duplicate": {receipts: []outbox.Receipt{{ID: outbox.NewID()}}, again: true},
		"refused":   {err: fmt.Errorf("%w: %s", outbox.ErrRefused, canary), class: "refused"},
		"database":  {err: errors.New(canary), class: "database"},
	} {
		spans, provider := recorder(t)
		_, done := otel.Create(request(t, provider), secretEvent())
		done(is.receipts, is.err)
		ended := spans.GetSpans()
		wantNoSecret(t, ended)
		got := attributes(ended[0])
		if class, _ := got["error.type"].(string); class != is.class || ended[0].Status.Description != is.class ||
			(ended[0].Status.Code == codes.Error) != (is.err != nil) {
			t.Errorf("%s: the span is %+v", name, ended[0])
		}
		if again, _ := got["posthaste.event.duplicate"].(bool); again != is.again ||
			again && got["messaging.message.id"] != is.receipts[0].ID.String() {
			t.Errorf("%s: the span is %+v", name, ended[0])
		}
	}
}

// A real refusal of outbox comes out as it went in, through all three ways to emit.
func TestEmitReturnsWhatOutboxDoes(t *testing.T) {
	t.Parallel()
	spans, provider := recorder(t)
	ctx := request(t, provider)
	bad := OrderCreated.New("", OrderCreatedV1{})
	_, viaSQL := otel.EmitSQL(ctx, (*sql.Tx)(nil), bad)
	_, viaGORM := otel.EmitGORM(ctx, (*sql.DB)(nil), bad)
	if !errors.Is(viaSQL, outbox.ErrRefused) || !errors.Is(viaGORM, outbox.ErrNoTransaction) ||
		len(spans.GetSpans()) != 2 {
		t.Errorf("got %v and %v, and %d spans", viaSQL, viaGORM, len(spans.GetSpans()))
	}
}

// Tracing is never why an event is refused, and never replaces a trace that the producer gave.
func TestHeadersThatAreThere(t *testing.T) {
	t.Parallel()
	spans, provider := recorder(t)
	ctx := request(t, provider)
	own := OrderCreated.New("1", OrderCreatedV1{})
	own.Headers = map[string]string{"TraceParent": "mine"}
	full := OrderCreated.New("1", OrderCreatedV1{})
	full.Headers = map[string]string{}
	for i := range outbox.MaxHeaders {
		full.Headers[fmt.Sprint("h", i)] = "x"
	}
	events, done := otel.Create(ctx, own, full)
	done(nil, nil)
	if !maps.Equal(events[0].Headers, own.Headers) || events[0].ID != (outbox.ID{}) || len(spans.GetSpans()) != 1 {
		t.Errorf("a trace of the producer's own: %v, %d spans", events[0].Headers, len(spans.GetSpans()))
	}
	for _, event := range events {
		if _, err := outbox.Statement("", event); err != nil {
			t.Errorf("an event is refused for its trace: %v", err)
		}
	}
	if len(events[1].Headers) != outbox.MaxHeaders {
		t.Errorf("%d headers", len(events[1].Headers))
	}
}

// A vendor's state travels, unless it is longer than a header may be: then the trace travels without it.
func TestTraceState(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{20: 1, 250: 0} {
		state := api.TraceState{}
		var err error
		for i := range 5 {
			if state, err = state.Insert(fmt.Sprint("vendor", i), strings.Repeat("x", size)); err != nil {
				t.Fatal(err)
			}
		}
		_, provider := recorder(t)
		parent := api.NewSpanContext(api.SpanContextConfig{
			TraceID: api.TraceID{1}, SpanID: api.SpanID{2}, TraceFlags: api.FlagsSampled, TraceState: state, Remote: true,
		})
		ctx, span := provider.Tracer("test").Start(api.ContextWithRemoteSpanContext(t.Context(), parent), "request")
		defer span.End()
		events, done := otel.Create(ctx, OrderCreated.New("1", OrderCreatedV1{}))
		done(nil, nil)
		_, has := events[0].Headers["tracestate"]
		if has != (want == 1) || events[0].Headers["traceparent"] == "" {
			t.Errorf("%d bytes a vendor: %v", size, events[0].Headers)
		}
		if _, err := outbox.Statement("", events[0]); err != nil {
			t.Error(err)
		}
	}
}

// Nobody traces: nothing is added. A trace that is not sampled travels as such.
func TestNobodyTraces(t *testing.T) {
	t.Parallel()
	events, done := otel.Create(t.Context(), secretEvent())
	done(nil, nil)
	if len(events[0].Headers) != 1 || events[0].ID != (outbox.ID{}) {
		t.Errorf("without a provider the event is %+v", events[0])
	}
	spans, provider := recorder(t, trace.WithSampler(trace.NeverSample()))
	upstream.SetTracerProvider(provider) // the only test that does
	defer upstream.SetTracerProvider(noop.NewTracerProvider())
	events, done = otel.Create(t.Context(), secretEvent())
	done(nil, nil)
	if parent := events[0].Headers["traceparent"]; !strings.HasSuffix(parent, "-00") || len(spans.GetSpans()) != 0 {
		t.Errorf("not sampled, and the header is %q, %d spans", parent, len(spans.GetSpans()))
	}
}

// message is one as the relay makes it.
func message(headers map[string]string) *publish.Message {
	id := outbox.NewID()
	all := map[string]string{"event_id": id.String(), "aggregate_id": canary, "tenant_id": canary}
	maps.Copy(all, headers)
	return &publish.Message{
		ID: id, Topic: "orders", Key: "order/" + canary, Body: []byte(`{"card":"` + canary + `"}`), Attributes: all,
		EventType: "order_created", AggregateType: "order",
		AggregateID: canary, Redelivered: true,
	}
}

const created = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestSend(t *testing.T) {
	t.Parallel()
	cause := errors.New(canary)
	for class, failure := range map[string]error{
		"": nil, "rejected": &publish.RejectedError{Err: cause},
		"terminal":    &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: cause},
		"topic_fault": &publish.TopicError{Err: cause}, "not_sent": publish.ErrNotSent, "unknown": context.DeadlineExceeded,
	} {
		spans, provider := recorder(t)
		sent := message(map[string]string{"traceparent": created, "tracestate": "a=b"})
		before := maps.Clone(sent.Attributes)
		var inside api.SpanContext
		publisher := otel.Publisher(publish.PublisherFunc(func(ctx context.Context, got *publish.Message) error {
			inside = api.SpanContextFromContext(ctx)
			if got != sent || !maps.Equal(got.Attributes, before) {
				t.Error("the message was changed on its way")
			}
			return failure
		}), otel.Config{System: "nats", Provider: provider})
		if _, pipelines := publisher.(publish.Pipeliner); pipelines {
			t.Error("it claims to pipeline, and what it wraps does not")
		}
		if err := publisher.Publish(t.Context(), sent); !errors.Is(err, failure) {
			t.Errorf("it returned %v", err)
		}
		wantSend(t, spans.GetSpans(), sent, class)
		if !inside.Equal(spans.GetSpans()[0].SpanContext) {
			t.Error("the publisher does not see the span")
		}
	}
}

// wantSend checks the one span of a message with the trace "created".
func wantSend(t *testing.T, spans tracetest.SpanStubs, sent *publish.Message, class string) {
	t.Helper()
	wantNoSecret(t, spans)
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	span := spans[0]
	want := map[attribute.Key]any{
		"messaging.system": "nats", "messaging.operation.name": "send", "messaging.operation.type": "send",
		"messaging.destination.name": "orders",
		"messaging.message.id":       sent.ID.String(), "messaging.message.body.size": int64(len(sent.Body)),
		"posthaste.event.type": "order_created", "posthaste.aggregate.type": "order", "posthaste.event.redelivered": true,
	}
	status := codes.Unset
	if class != "" {
		want["error.type"] = class
		status = codes.Error
	}
	if !maps.Equal(attributes(span), want) || span.Name != "send orders" || span.SpanKind != api.SpanKindClient ||
		span.Status.Code != status || span.Status.Description != class {
		t.Errorf("%s: the span is %+v", class, span)
	}
	if len(span.Links) != 1 || traceParent(span.Links[0].SpanContext) != created || traceParent(span.Parent) != created ||
		span.Links[0].SpanContext.TraceState().Get("a") != "b" {
		t.Errorf("%s: the links are %+v, the parent is %+v", class, span.Links, span.Parent)
	}
}

// pipeliner answers on a goroutine of its own.
type pipeliner struct {
	publish.PublisherFunc
	failure error
}

func (p pipeliner) Enqueue(_ context.Context, _ *publish.Message, done func(error)) {
	go done(p.failure)
}
func (p pipeliner) Depth() int { return 7 }

func TestPipelined(t *testing.T) {
	t.Parallel()
	for class, failure := range map[string]error{"": nil, "topic_fault": &publish.TopicError{Err: errors.New(canary)}} {
		spans, provider := recorder(t)
		wrapped, pipelines := otel.Publisher(pipeliner{failure: failure}, otel.Config{
			System: "nats", Provider: provider,
		}).(publish.Pipeliner)
		if !pipelines || wrapped.Depth() != 7 {
			t.Fatal("it does not pipeline any more")
		}
		sent, answer := message(map[string]string{"traceparent": created, "tracestate": "a=b"}), make(chan error, 1)
		wrapped.Enqueue(t.Context(), sent, func(err error) { answer <- err })
		select {
		case err := <-answer:
			if !errors.Is(err, failure) {
				t.Errorf("it answered %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it did not answer")
		}
		wantSend(t, spans.GetSpans(), sent, class)
	}
}

type panicking struct{ pipeliner }

func (panicking) Enqueue(context.Context, *publish.Message, func(error)) { panic(canary) }

// A publisher that panics does so still, and its span says it without its words.
func TestAPanicEndsTheSpan(t *testing.T) {
	t.Parallel()
	spans, provider := recorder(t)
	inner := panicking{pipeliner{PublisherFunc: func(context.Context, *publish.Message) error { panic(canary) }}}
	publisher := otel.Publisher(inner, otel.Config{Provider: provider})
	for name, call := range map[string]func(){
		"publish": func() { _ = publisher.Publish(t.Context(), message(nil)) },
		"enqueue": func() { publisher.(publish.Pipeliner).Enqueue(t.Context(), message(nil), func(error) {}) },
	} {
		spans.Reset()
		func() {
			defer func() {
				if recover() != canary {
					t.Errorf("%s: the panic is lost", name)
				}
			}()
			call()
		}()
		ended := spans.GetSpans()
		wantNoSecret(t, ended)
		if len(ended) != 1 || attributes(ended[0])["error.type"] != "panic" ||
			attributes(ended[0])["messaging.system"] != "posthaste" {
			t.Errorf("%s: the spans are %+v", name, ended)
		}
	}
}

// What is no trace is none: the span is the first of its own.
func TestTracesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, parent := range []string{
		"", "x", strings.ToUpper(created), created + "-x", created + strings.Repeat("0", 1000), "ff" + created[2:],
		"00-" + strings.Repeat("0", 32) + created[35:], created[:54],
	} {
		spans, provider := recorder(t)
		publisher := otel.Publisher(publish.PublisherFunc(func(context.Context, *publish.Message) error {
			return nil
		}), otel.Config{Provider: provider})
		if err := publisher.Publish(t.Context(), message(map[string]string{"traceparent": parent})); err != nil {
			t.Fatal(err)
		}
		if ended := spans.GetSpans(); len(ended) != 1 || len(ended[0].Links) != 0 || ended[0].Parent.IsValid() {
			t.Errorf("%q: the spans are %+v", parent, ended)
		}
	}
}

// Whether an event is sampled was decided when it was created.
func TestTheSampleIsThatOfTheCreation(t *testing.T) {
	t.Parallel()
	for parent, want := range map[string]int{created: 1, created[:53] + "00": 0} {
		for _, root := range []trace.Sampler{trace.AlwaysSample(), trace.NeverSample()} {
			spans, provider := recorder(t, trace.WithSampler(trace.ParentBased(root)))
			publisher := otel.Publisher(publish.PublisherFunc(func(context.Context, *publish.Message) error {
				return nil
			}), otel.Config{Provider: provider})
			if err := publisher.Publish(t.Context(), message(map[string]string{"traceparent": parent})); err != nil {
				t.Fatal(err)
			}
			if got := len(spans.GetSpans()); got != want {
				t.Errorf("%s with %s: %d spans", parent, root.Description(), got)
			}
		}
	}
}

var keys = []attribute.Key{
	"messaging.system", "messaging.operation.name", "messaging.operation.type", "messaging.destination.name",
	"messaging.message.id",
	"messaging.message.body.size", "posthaste.event.type", "posthaste.aggregate.type", "posthaste.event.redelivered",
	"posthaste.event.duplicate", "error.type",
}

// FuzzSpans: whatever is in an event's headers and in an error's text, a span has the attributes that are listed and
// nothing of these.
func FuzzSpans(f *testing.F) {
	f.Add(created, "a=b", "password=x")
	f.Add("00-", ",,,=", "")
	f.Fuzz(func(t *testing.T, parent, state, text string) {
		spans, provider := recorder(t)
		publisher := otel.Publisher(publish.PublisherFunc(func(context.Context, *publish.Message) error {
			return errors.New(text)
		}), otel.Config{Provider: provider})
		_ = publisher.Publish(t.Context(), message(map[string]string{"traceparent": parent, "tracestate": state}))
		for _, span := range spans.GetSpans() {
			if span.Status.Description != "unknown" || len(span.Links) > 1 {
				t.Fatalf("the span is %+v", span)
			}
			for key := range attributes(span) {
				if !slices.Contains(keys, key) {
					t.Fatalf("the attribute %s is not expected", key)
				}
			}
		}
	})
}

func BenchmarkPublish(b *testing.B) {
	nothing := publish.PublisherFunc(func(context.Context, *publish.Message) error { return nil })
	sampled := trace.NewTracerProvider()
	never := trace.NewTracerProvider(trace.WithSampler(trace.ParentBased(trace.NeverSample())))
	for _, is := range []struct {
		name      string
		publisher publish.Publisher
		parent    string
	}{
		{"not wrapped", nothing, created},
		{"no provider, no trace", otel.Publisher(nothing, otel.Config{}), ""},
		{"no provider, a trace", otel.Publisher(nothing, otel.Config{}), created},
		{"not sampled", otel.Publisher(nothing, otel.Config{Provider: never}), created[:53] + "00"},
		{"sampled", otel.Publisher(nothing, otel.Config{Provider: sampled}), created},
	} {
		b.Run(is.name, func(b *testing.B) {
			sent := message(map[string]string{"traceparent": is.parent})
			ctx := b.Context()
			for b.Loop() {
				if err := is.publisher.Publish(ctx, sent); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
