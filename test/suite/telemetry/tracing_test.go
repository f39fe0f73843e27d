package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/telemetry/otel"
	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubtest"
)

const (
	// canary stands for everything that no span may show.
	canary = "hunter2"
)

type note struct {
	Text string `json:"text"`
}

var placed = outbox.Define[note](outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: "orders"})

// env is an outbox, and a provider that keeps spans.
type env struct {
	*pgtest.DB
	spans    *tracetest.InMemoryExporter
	provider *trace.TracerProvider
}

func newEnv(t *testing.T, db *pgtest.DB) *env {
	t.Helper()
	p := &env{DB: db, spans: tracetest.NewInMemoryExporter()}
	p.provider = trace.NewTracerProvider(trace.WithSyncer(p.spans))
	t.Cleanup(func() { _ = p.provider.Shutdown(context.Background()) })
	return p
}

// emit writes events in one transaction, inside a request that is traced, and returns the request's span.
func (p *env) emit(t *testing.T, events ...outbox.Event) api.SpanContext {
	t.Helper()
	ctx, request := p.provider.Tracer("test").Start(t.Context(), "request")
	defer request.End()
	tx := p.Begin(t)
	if _, err := otel.Emit(ctx, outbox.InSchema(tx, p.Schema), events...); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return request.SpanContext()
}

// relay publishes through a tracing publisher until the test ends.
func (p *env) relay(t *testing.T, publisher publish.Publisher) {
	t.Helper()
	registry, err := outbox.NewRegistry(placed)
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(relay.Config{
		Database: p.URL, Schema: p.Schema, Registry: registry,
		Publisher: otel.Publisher(publisher, otel.Config{System: "here", Provider: p.provider}),
		Settings:  relay.Settings{BaseDelay: 10 * time.Millisecond, MaxDelay: 20 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, "the relay", r.Run)
}

// await waits for so many spans of this name, and returns them in the order of their ends.
func (p *env) await(t *testing.T, name string, count int) (found tracetest.SpanStubs) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("there are %d spans %q", count, name), func() bool {
		found = nil
		for _, span := range p.spans.GetSpans() {
			if span.Name == name {
				found = append(found, span)
			}
		}
		return len(found) >= count
	}, func() string { return fmt.Sprintf("there are %d", len(found)) })
	return found
}

// attribute is one of a span, as a text.
func attribute(span tracetest.SpanStub, key string) string {
	for _, is := range span.Attributes {
		if string(is.Key) == key {
			return is.Value.String()
		}
	}
	return ""
}

// wantNoSecret looks into all spans there are.
func (p *env) wantNoSecret(t *testing.T) {
	t.Helper()
	for _, span := range p.spans.GetSpans() {
		if all := fmt.Sprintf("%+v", span); strings.Contains(all, canary) {
			t.Errorf("a span shows what it must not: %s", all)
		}
	}
}

func secretive(id string) outbox.Event {
	event := placed.New(canary+id, note{Text: canary})
	event.TenantID, event.DedupeKey = canary, canary+"/"+id
	event.Actor, event.Headers = &outbox.Actor{Type: "user", ID: canary}, map[string]string{"card": canary}
	return event
}

// broker answers each try as the test says, and keeps the attributes that it saw.
type broker struct {
	mutex  sync.Mutex
	saw    []map[string]string
	bodies []string
	fail   error // the first try
}

func (b *broker) Publish(_ context.Context, message *publish.Message) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.saw, b.bodies = append(b.saw, maps.Clone(message.Attributes)), append(b.bodies, string(message.Body))
	if len(b.saw) == 1 {
		return b.fail
	}
	return nil
}

// From the request to the broker, through a failure: one trace, a span "send" for each try, all linked to "create", and
// the same message in each.
func TestFromTheRequestToTheBroker(t *testing.T) {
	t.Parallel()
	cause := errors.New(canary)
	for class, failure := range map[string]error{
		"rejected": &publish.RejectedError{Err: cause}, "topic_fault": &publish.TopicError{Err: cause}, "unknown": cause,
		"not_sent": fmt.Errorf("%s: %w", canary, publish.ErrNotSent),
	} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
				p, b := newEnv(t, db), &broker{fail: failure}
				request := p.emit(t, secretive("1"))
				p.relay(t, b)
				sends := p.await(t, "send orders", 2)
				p.wantNoSecret(t)
				create := p.await(t, "create orders", 1)[0]
				if create.Parent.SpanID() != request.SpanID() {
					t.Error("the event was not created in the request")
				}
				for _, send := range sends {
					if len(send.Links) != 1 || send.Links[0].SpanContext.SpanID() != create.SpanContext.SpanID() ||
						send.Links[0].SpanContext.TraceID() != request.TraceID() ||
						send.Parent.SpanID() != create.SpanContext.SpanID() || send.SpanContext.TraceID() != request.TraceID() {
						t.Errorf("the span is not linked to %s: %+v", create.SpanContext.SpanID(), send)
					}
					if attribute(send, "messaging.message.id") != attribute(create, "messaging.message.id") ||
						attribute(send, "messaging.message.id") == "" {
						t.Error("the spans are about different events")
					}
				}
				if attribute(sends[0], "error.type") != class || attribute(sends[1], "error.type") != "" {
					t.Errorf("the classes are %q and %q", attribute(sends[0], "error.type"), attribute(sends[1], "error.type"))
				}
				b.mutex.Lock()
				defer b.mutex.Unlock()
				context := fmt.Sprintf("00-%s-%s-01", create.SpanContext.TraceID(), create.SpanContext.SpanID())
				if b.saw[0]["traceparent"] != context || b.saw[0]["card"] != canary || !maps.Equal(b.saw[0], b.saw[1]) ||
					b.bodies[0] != b.bodies[1] {
					t.Errorf("the broker saw %v, and then %v; created in %s", b.saw[0], b.saw[1], context)
				}
			})
		})
	}
}

// What is dead at once has one span, and says so.
func TestADeadEvent(t *testing.T) {
	t.Parallel()
	p, b := newEnv(t, pgtest.New(t, pgtest.Servers()[0])),
		&broker{fail: &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: errors.New(canary)}}
	p.emit(t, secretive("1"))
	p.emit(t, secretive("2"))
	p.relay(t, b)
	sends := p.await(t, "send orders", 2)
	p.wantNoSecret(t)
	classes := []string{attribute(sends[0], "error.type"), attribute(sends[1], "error.type")}
	slices.Sort(classes)
	if !slices.Equal(classes, []string{"", "terminal"}) ||
		attribute(sends[0], "messaging.message.id") == attribute(sends[1], "messaging.message.id") {
		t.Errorf("the spans are %+v", sends)
	}
}

// Many events of one transaction are many spans, each with the context that its own row has. A second emit under a used
// key adds nothing to the outbox, and says so; a transaction that is rolled back leaves no send.
func TestManyEventsOfOneTransaction(t *testing.T) {
	t.Parallel()
	p, b := newEnv(t, pgtest.New(t, pgtest.Servers()[0])), &broker{}
	const events = 20
	var all []outbox.Event
	for i := range events {
		all = append(all, secretive(fmt.Sprint(i)))
	}
	p.emit(t, all...)
	p.emit(t, all[0])
	ctx, request := p.provider.Tracer("test").Start(t.Context(), "request")
	tx := p.Begin(t)
	if _, err := otel.Emit(ctx, outbox.InSchema(tx, p.Schema), secretive("never")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	request.End()
	p.relay(t, b)
	sends := p.await(t, "send orders", events)
	creates := p.await(t, "create orders", events+2)
	p.wantNoSecret(t)
	event := map[string]string{} // by the span that created it
	for _, create := range creates[:events] {
		event[create.SpanContext.SpanID().String()] = attribute(create, "messaging.message.id")
	}
	for _, send := range sends {
		if event[send.Links[0].SpanContext.SpanID().String()] != attribute(send, "messaging.message.id") {
			t.Errorf("a span is linked to another event's: %+v", send)
		}
	}
	if again := creates[events]; attribute(again, "posthaste.event.duplicate") != "true" ||
		!slices.Contains(slices.Collect(maps.Values(event)), attribute(again, "messaging.message.id")) {
		t.Errorf("the second emit is %+v", again)
	}
	if len(event) != events || len(p.await(t, "send orders", events)) != events {
		t.Errorf("%d events, %d sends", len(event), len(p.await(t, "send orders", events)))
	}
}

// A publisher that pipelines still does, and the order of an aggregate is kept.
func TestPipelined(t *testing.T) {
	t.Parallel()
	p := newEnv(t, pgtest.New(t, pgtest.Servers()[0]))
	client, publisher := newPubsub(t)
	const events = 60
	var all []outbox.Event
	for range events {
		all = append(all, placed.New(canary, note{Text: canary}))
	}
	p.emit(t, all...)
	deep := &deepest{Publisher: publisher}
	p.relay(t, deep)
	sends := p.await(t, "send orders", events)
	p.wantNoSecret(t)
	for _, send := range sends {
		if attribute(send, "error.type") != "" || len(send.Links) != 1 {
			t.Errorf("the span is %+v", send)
		}
	}
	if deep.most() < 2 {
		t.Error("there was one message in flight at a time")
	}
	wantInOrder(t, client, events)
}

// deepest counts how many messages are in flight.
type deepest struct {
	*googlepubsub.Publisher
	mutex     sync.Mutex
	now, ever int
}

func (d *deepest) Enqueue(ctx context.Context, message *publish.Message, done func(error)) {
	d.add(1)
	d.Publisher.Enqueue(ctx, message, func(err error) {
		d.add(-1)
		done(err)
	})
}

func (d *deepest) add(n int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.now += n
	d.ever = max(d.ever, d.now)
}

func (d *deepest) most() int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.ever
}

func newPubsub(t *testing.T) (*pubsub.Client, *googlepubsub.Publisher) {
	t.Helper()
	_, client := pubsubtest.Start(t, "orders")
	if _, err := client.SubscriptionAdminClient.CreateSubscription(t.Context(), &pb.Subscription{
		Name: "projects/p/subscriptions/billing", Topic: "projects/p/topics/orders", EnableMessageOrdering: true,
		AckDeadlineSeconds: 600,
	}); err != nil {
		t.Fatal(err)
	}
	publisher, err := googlepubsub.NewPublisher(client, googlepubsub.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	return client, publisher
}

func wantInOrder(t *testing.T, client *pubsub.Client, count int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	last, got := "", 0
	for got < count {
		answer, err := client.SubscriptionAdminClient.Pull(ctx, &pb.PullRequest{
			Subscription: "projects/p/subscriptions/billing", MaxMessages: 100,
		})
		if err != nil {
			t.Fatalf("%d of %d messages: %v", got, count, err)
		}
		var ids []string
		for _, received := range answer.GetReceivedMessages() {
			seq := fmt.Sprintf("%20s", received.GetMessage().GetAttributes()["outbox_seq"])
			if seq <= last {
				t.Errorf("%s came after %s", seq, last)
			}
			last = seq
			ids = append(ids, received.GetAckId())
			got++
		}
		if len(ids) == 0 {
			continue
		}
		if err := client.SubscriptionAdminClient.Acknowledge(ctx, &pb.AcknowledgeRequest{
			Subscription: "projects/p/subscriptions/billing", AckIds: ids,
		}); err != nil {
			t.Fatal(err)
		}
	}
}
