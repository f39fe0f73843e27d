package otel

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/posthaste-dev/posthaste/outbox"
)

// scope is the name of the tracer.
const scope = "github.com/posthaste-dev/posthaste/telemetry/otel"

// The headers of an event that hold the trace in which it was created.
const (
	traceParent = "traceparent"
	traceState  = "tracestate"
)

// Emit is [outbox.Emit] with a span "create" for each event.
func Emit[T outbox.PgxTx[R], R outbox.Row](ctx context.Context, tx T,
	events ...outbox.Event,
) ([]outbox.Receipt, error) {
	events, done := Create(ctx, events...)
	receipts, err := outbox.Emit(ctx, tx, events...)
	done(receipts, err)
	return receipts, err
}

// EmitSQL is [outbox.EmitSQL] with a span "create" for each event.
func EmitSQL(ctx context.Context, tx outbox.SQLTx, events ...outbox.Event) ([]outbox.Receipt, error) {
	events, done := Create(ctx, events...)
	receipts, err := outbox.EmitSQL(ctx, tx, events...)
	done(receipts, err)
	return receipts, err
}

// EmitGORM is [outbox.EmitGORM] with a span "create" for each event.
func EmitGORM(ctx context.Context, pool outbox.GORMPool, events ...outbox.Event) ([]outbox.Receipt, error) {
	events, done := Create(ctx, events...)
	receipts, err := outbox.EmitGORM(ctx, pool, events...)
	done(receipts, err)
	return receipts, err
}

// Create begins a span "create" for each event and returns the events with its context in their headers, for those who
// write them with a statement of [outbox.Statement]; done ends the spans and must be called. The spans are made by the
// provider of the span in ctx, or by the global one. An event that has a traceparent already is left as it is.
func Create(ctx context.Context, events ...outbox.Event) (traced []outbox.Event, done func([]outbox.Receipt, error)) {
	tracer := providerOf(ctx).Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	traced = slices.Clone(events)
	spans := make([]trace.Span, len(events))
	for i := range traced {
		spans[i] = create(ctx, tracer, &traced[i])
	}
	return traced, func(receipts []outbox.Receipt, err error) {
		for i, span := range spans {
			created(span, i, receipts, err)
		}
	}
}

func providerOf(ctx context.Context) trace.TracerProvider {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return span.TracerProvider()
	}
	return otel.GetTracerProvider()
}

// create begins the span of one event. There is always one, if only one that does nothing.
func create(ctx context.Context, tracer trace.Tracer, event *outbox.Event) trace.Span {
	if hasTrace(event.Headers) {
		return noop.Span{}
	}
	contract := event.Contract()
	ctx, span := tracer.Start(ctx, strings.TrimSpace("create "+contract.Topic), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(
			semconv.MessagingSystemKey.String("posthaste"), // which broker it will be, the application does not know
			semconv.MessagingOperationName("create"), semconv.MessagingOperationTypeCreate,
			semconv.MessagingDestinationName(contract.Topic), eventType.String(contract.Type),
			aggregateType.String(contract.Aggregate)))
	if !span.SpanContext().IsValid() {
		return span
	}
	if event.ID == (outbox.ID{}) {
		event.ID = outbox.NewID()
	}
	span.SetAttributes(semconv.MessagingMessageID(event.ID.String()))
	event.Headers = withTrace(ctx, event.Headers)
	return span
}

func hasTrace(headers map[string]string) bool {
	for name := range headers {
		if strings.EqualFold(name, traceParent) {
			return true
		}
	}
	return false
}

// withTrace adds the context of the span to headers, as far as there is room: tracing must not be why an event is
// refused.
func withTrace(ctx context.Context, headers map[string]string) map[string]string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	same := maps.Clone(headers)
	if same == nil {
		same = make(map[string]string, len(carrier))
	}
	for _, name := range []string{traceParent, traceState} {
		if value := carrier.Get(name); value != "" && len(value) <= outbox.MaxHeaderValueBytes &&
			len(same) < outbox.MaxHeaders {
			same[name] = value
		}
	}
	return same
}

// created ends the span of the event at this index.
func created(span trace.Span, index int, receipts []outbox.Receipt, err error) {
	defer span.End()
	switch {
	case errors.Is(err, outbox.ErrRefused):
		fail(span, "refused")
	case err != nil:
		fail(span, "database")
	case index < len(receipts) && !receipts[index].Created:
		// The dedupe key was used before: this is the event that stands in the outbox, created by another span.
		span.SetAttributes(semconv.MessagingMessageID(receipts[index].ID.String()), duplicate.Bool(true))
	}
}

// The attributes that the conventions have no names for.
const (
	eventType     = attribute.Key("posthaste.event.type")
	aggregateType = attribute.Key("posthaste.aggregate.type")
	duplicate     = attribute.Key("posthaste.event.duplicate")
	redelivered   = attribute.Key("posthaste.event.redelivered")
	attempt       = attribute.Key("posthaste.event.attempt")
)

// fail says that a span failed, and of the error its class alone.
func fail(span trace.Span, class string) {
	span.SetStatus(codes.Error, class)
	span.SetAttributes(semconv.ErrorTypeKey.String(class))
}
