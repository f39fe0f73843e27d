package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/telemetry/otel"
	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// From the request through a broker to the consumer's handler, which fails once: one trace, and each run of the handler
// is a span that is linked to the one in which the event was created.
func TestFromTheRequestToTheConsumer(t *testing.T) {
	t.Parallel()
	p := newEnv(t, pgtest.New(t, pgtest.Servers()[0]))
	client, publisher := newPubsub(t)
	failures := make(chan error, 1)
	failures <- errors.New(canary)
	billing, err := consumer.New(consumer.Config{
		Name: "billing", Logger: slog.New(slog.DiscardHandler),
		Middleware: []consumer.Middleware{otel.Process(otel.Config{System: "gcp_pubsub", Provider: p.provider})},
	}, consumer.On(placed, func(_ context.Context, _ *consumer.Event, got note) error {
		if got.Text != canary {
			t.Errorf("the payload is %+v", got)
		}
		select {
		case err := <-failures:
			return err
		default:
			return nil
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, "the loop", func(ctx context.Context) error {
		return googlepubsub.Consume(ctx, client, billing, googlepubsub.ConsumeConfig{Subscription: "billing"})
	})
	request := p.emit(t, secretive("1"))
	p.relay(t, publisher)
	runs := p.await(t, "process billing", 2)
	create, send := p.await(t, "create orders", 1)[0], p.await(t, "send orders", 1)[0]
	p.wantNoSecret(t)
	for _, run := range runs {
		if run.SpanContext.TraceID() != request.TraceID() || run.Parent.SpanID() != create.SpanContext.SpanID() ||
			len(run.Links) != 1 ||
			attribute(run, "messaging.message.id") != attribute(create, "messaging.message.id") {
			t.Errorf("the span does not belong to %s: %+v", create.SpanContext.SpanID(), run)
		}
	}
	if send.SpanContext.TraceID() != request.TraceID() {
		t.Error("the send is in another trace")
	}
	if attribute(runs[0], "error.type") != "failed" || attribute(runs[1], "error.type") != "" {
		t.Errorf("the runs are %q and %q", attribute(runs[0], "error.type"), attribute(runs[1], "error.type"))
	}
}
