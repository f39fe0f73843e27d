package otel

import (
	"context"
	"errors"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/posthaste-dev/posthaste/consumer"
)

// Process returns a middleware that makes a span "process" of every run of a consumer's handler. The span is a child of
// the event's span "create", if the event has one, and linked to it, as [Publisher]'s are. Where it is the first
// middleware, what others decide, a guard for instance, has its span too.
func Process(config Config) consumer.Middleware {
	config = config.withDefaults()
	tracer := config.Provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	return func(name string, next consumer.Handler) consumer.Handler {
		same := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(semconv.MessagingSystemKey.String(config.System), semconv.MessagingOperationName("process"),
				semconv.MessagingOperationTypeProcess, semconv.MessagingConsumerGroupName(name)),
		}
		return func(ctx context.Context, event *consumer.Event) (err error) {
			ctx, options := createdIn(ctx, event.Attributes, same)
			ctx, span := tracer.Start(ctx, "process "+name, options...)
			if span.IsRecording() {
				span.SetAttributes(semconv.MessagingMessageID(event.ID.String()), semconv.MessagingMessageBodySize(len(event.Body)),
					eventType.String(event.Type), aggregateType.String(event.Aggregate.Type), attempt.Int(event.Attempt))
			}
			panics := true
			defer func() {
				processed(span, panics, err)
				span.End()
			}()
			err = next(ctx, event)
			panics = false
			return err
		}
	}
}

// processed says what became of a handler's run.
func processed(span trace.Span, panics bool, err error) {
	var delay *consumer.DelayError
	var poison *consumer.PoisonError
	switch {
	case panics:
		fail(span, "panic")
	case err == nil:
	case errors.Is(err, consumer.ErrDuplicate):
		span.SetAttributes(duplicate.Bool(true))
	case errors.As(err, &delay):
		fail(span, "delayed")
	case errors.As(err, &poison):
		fail(span, "poisoned")
	default:
		fail(span, "failed")
	}
}
