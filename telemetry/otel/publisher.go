package otel

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/posthaste-dev/posthaste/publish"
)

// Config says how a broker's messages are traced. Its zero value works.
type Config struct {
	// System is what the conventions call the broker: "gcp_pubsub", "nats". Defaults to "posthaste".
	System string
	// Provider makes the spans. Defaults to the global one.
	Provider trace.TracerProvider
}

func (c Config) withDefaults() Config {
	if c.System == "" {
		c.System = "posthaste"
	}
	if c.Provider == nil {
		c.Provider = otel.GetTracerProvider()
	}
	return c
}

// Publisher returns a publisher that makes a span "send" of every attempt of this one, and otherwise is the same: where
// this one pipelines, it does. The span is a child of the event's span "create", if the event has one, and linked to
// it, so whether it is sampled was decided there. The message stays as it is: what consumers see is the
// trace in which the event was created, also when it is sent again years later.
func Publisher(publisher publish.Publisher, config Config) publish.Publisher {
	config = config.withDefaults()
	traced := &tracedPublisher{
		inner: publisher, system: config.System,
		tracer: config.Provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
	}
	if pipeliner, is := publisher.(publish.Pipeliner); is {
		return &tracedPipeliner{traced, pipeliner}
	}
	return traced
}

type tracedPublisher struct {
	inner  publish.Publisher
	system string
	tracer trace.Tracer
	topics sync.Map // *topicSpans by topic; the registry bounds them
}

// topicSpans is what all spans of a topic have in common.
type topicSpans struct {
	name    string
	options []trace.SpanStartOption
}

func (p *tracedPublisher) spansOf(topic string) *topicSpans {
	if known, is := p.topics.Load(topic); is {
		return known.(*topicSpans) //nolint:forcetypeassert // it holds nothing else
	}
	made := &topicSpans{name: "send " + topic, options: []trace.SpanStartOption{
		// CLIENT and not PRODUCER: the message's context is that of "create".
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(semconv.MessagingSystemKey.String(p.system), semconv.MessagingOperationName("send"),
			semconv.MessagingOperationTypeSend,
			semconv.MessagingDestinationName(topic)),
	}}
	p.topics.Store(topic, made)
	return made
}

// start begins the span of one attempt.
func (p *tracedPublisher) start(ctx context.Context, message *publish.Message) (context.Context, trace.Span) {
	shared := p.spansOf(message.Topic)
	ctx, options := createdIn(ctx, message.Attributes, shared.options)
	ctx, span := p.tracer.Start(ctx, shared.name, options...)
	if span.IsRecording() {
		span.SetAttributes(semconv.MessagingMessageID(message.ID.String()),
			semconv.MessagingMessageBodySize(len(message.Body)),
			eventType.String(message.EventType), aggregateType.String(message.AggregateType),
			redelivered.Bool(message.Redelivered))
	}
	return ctx, span
}

// Publish is that of the publisher.
func (p *tracedPublisher) Publish(ctx context.Context, message *publish.Message) (err error) {
	ctx, span := p.start(ctx, message)
	panics := true
	defer func() {
		if panics {
			fail(span, "panic")
		} else if err != nil {
			fail(span, string(publish.ClassOf(err)))
		}
		span.End()
	}()
	err = p.inner.Publish(ctx, message)
	panics = false
	return err
}

type tracedPipeliner struct {
	*tracedPublisher
	inner publish.Pipeliner
}

var _ publish.Pipeliner = (*tracedPipeliner)(nil)

// Enqueue is that of the publisher. The span ends with the answer.
func (p *tracedPipeliner) Enqueue(ctx context.Context, message *publish.Message, done func(error)) {
	ctx, span := p.start(ctx, message)
	panics := true
	defer func() {
		if panics {
			fail(span, "panic")
			span.End()
		}
	}()
	p.inner.Enqueue(ctx, message, func(err error) {
		if err != nil {
			fail(span, string(publish.ClassOf(err)))
		}
		span.End()
		done(err)
	})
	panics = false
}

// Depth is that of the publisher.
func (p *tracedPipeliner) Depth() int { return p.inner.Depth() }
