package otel

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// createdIn returns the context of the span in which a message's event was created, if it has one, and the link to it.
func createdIn(ctx context.Context, attributes map[string]string,
	options []trace.SpanStartOption,
) (context.Context, []trace.SpanStartOption) {
	if attributes[traceParent] == "" {
		return ctx, options
	}
	created := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(attributes))
	context := trace.SpanContextFromContext(created)
	if !context.IsRemote() {
		return ctx, options
	}
	return created, append(slices.Clip(options), trace.WithLinks(trace.Link{SpanContext: context}))
}
