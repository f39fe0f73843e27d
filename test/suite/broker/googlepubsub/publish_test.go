package googlepubsub_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func TestMessageArrivesAsItIs(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	m := newMessage("ü 1", 7)
	m.Body = []byte("{\"a\": 1.0,\n \"a\":\"\\u00e9 \xf0\x9f\x9a\x80\", \"n\": 10000000000000000000000}")
	m.Attributes["trace"] = "ü\n\x00;"
	body, attributes := bytes.Clone(m.Body), maps.Clone(m.Attributes)
	if err := w.publisher.Publish(testContext(t), m); err != nil {
		t.Fatal(err)
	}
	got := w.journal(t)
	if len(got) != 1 || !bytes.Equal(got[0].Data, body) || !maps.Equal(got[0].Attributes, attributes) ||
		got[0].OrderingKey != m.Key || got[0].Topic != topicName(orders) {
		t.Errorf("arrived: %+v", got)
	}
	if !bytes.Equal(m.Body, body) || !maps.Equal(m.Attributes, attributes) {
		t.Error("Publish changed the message")
	}
}

func TestTopicByFullName(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	m := newMessage("1", 1)
	m.Topic = topicName(orders)
	if err := w.publisher.Publish(testContext(t), m); err != nil {
		t.Fatal(err)
	}
	w.expectHistory(t, []*publish.Message{m})
}

func TestKeysAreInOrder(t *testing.T) {
	t.Parallel()
	for _, config := range []googlepubsub.PublisherConfig{
		{}, {CountThreshold: 3}, {MaxOutstandingMessages: 7}, {DelayThreshold: time.Nanosecond},
	} {
		t.Run(fmt.Sprintf("%+v", config), func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, config)
			ctx := testContext(t)
			const keys, each = 40, 50
			want := make([][]*publish.Message, keys)
			var producers sync.WaitGroup
			for key := range want {
				want[key] = newMessages(fmt.Sprint(key), each)
				producers.Go(func() {
					for _, p := range enqueue(ctx, w.publisher, want[key]...) {
						if err := p.wait(t); err != nil {
							t.Errorf("event %d of %s: %v", p.message.Seq, p.message.Key, err)
						}
					}
				})
			}
			producers.Wait()
			if copies := w.expectHistory(t, want...); copies > 0 {
				t.Errorf("%d copies without a failure", copies)
			}
		})
	}
}

// The order must reach who receives, not only the journal.
func TestSubscriberReceivesInOrder(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{CountThreshold: 4})
	subscription := "projects/" + project + "/subscriptions/s"
	_, err := w.client.SubscriptionAdminClient.CreateSubscription(testContext(t), &pb.Subscription{
		Name: subscription, Topic: topicName(orders), EnableMessageOrdering: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := newMessages("1", 30)
	for _, p := range enqueue(testContext(t), w.publisher, want...) {
		if err := p.wait(t); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(testContext(t))
	var mu sync.Mutex
	var got []string
	err = w.client.Subscriber(subscription).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		mu.Lock()
		defer mu.Unlock()
		m.Ack()
		if got = append(got, m.Attributes["event_id"]); len(got) == len(want) {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range want {
		if got[i] != m.ID.String() {
			t.Fatalf("event %d is not number %d of what was received", m.Seq, i)
		}
	}
}

func TestLongKeysAreHashed(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	ctx := testContext(t)
	long, longest := newMessage(strings.Repeat("x", 2000)+"1", 1), newMessage("", 2)
	other := newMessage(strings.Repeat("x", 2000)+"2", 3)
	longest.Key = strings.Repeat("k", 1024)
	for _, m := range []*publish.Message{long, longest, other} {
		if err := w.publisher.Publish(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	got := w.journal(t)
	if got[1].OrderingKey != longest.Key {
		t.Error("a key of 1024 bytes did not arrive as it is")
	}
	if key := got[0].OrderingKey; len(key) > 1024 || key == "" || key == got[2].OrderingKey {
		t.Errorf("keys %q and %q for two long aggregates", key, got[2].OrderingKey)
	}
}

func TestUnordered(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{Unordered: true})
	if depth := w.publisher.Depth(); depth != 1 {
		t.Errorf("depth is %d: without ordering keys nothing may be pipelined", depth)
	}
	w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindError, Code: "NOT_FOUND", Count: 1})
	messages := newMessages("1", 5)
	if err := w.publisher.Publish(testContext(t), messages[0]); err == nil {
		t.Error("no error")
	}
	for _, m := range messages {
		if err := w.publisher.Publish(testContext(t), m); err != nil {
			t.Fatal(err)
		}
	}
	w.expectHistory(t, messages)
	if key := w.journal(t)[0].OrderingKey; key != "" {
		t.Errorf("ordering key is %q", key)
	}
}

// One topic has no order, and its aggregates have one message under way at a time. The other one keeps its order.
func TestUnorderedTopics(t *testing.T) {
	t.Parallel()
	middle := &middleman{}
	w := newEnv(t, googlepubsub.PublisherConfig{UnorderedTopics: []string{"clicks"}}, middle.dialOption())
	w.createTopic(t, "clicks")
	if depth := w.publisher.Depth(); depth != 100 {
		t.Errorf("depth is %d", depth)
	}
	clicks, ordered := newMessages("1", 10), newMessages("1", 10)
	for _, m := range clicks {
		m.Topic = "clicks"
	}
	answer := middle.hold()
	t.Cleanup(answer)
	all := enqueue(testContext(t), w.publisher, clicks...)
	eventually.True(t, "the first request is before the broker", func() bool { return middle.heldUp() == 1 })
	answer()
	for _, p := range all {
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
	}
	if most := middle.largest(); most != 1 {
		t.Errorf("%d messages of one aggregate were in one request without an order", most)
	}
	sendAll(t, w.publisher, ordered, 10)
	w.expectHistory(t, clicks, ordered)
	for _, got := range w.journal(t) {
		if (got.OrderingKey == "") != (got.Topic == topicName("clicks")) {
			t.Errorf("topic %s, ordering key %q", got.Topic, got.OrderingKey)
		}
	}
}

// What is compressed arrives as it is.
func TestCompression(t *testing.T) {
	t.Parallel()
	var compressed atomic.Bool
	look := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		for _, option := range opts {
			if _, is := option.(grpc.CompressorCallOption); is {
				compressed.Store(true)
			}
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	w := newEnv(t, googlepubsub.PublisherConfig{Compression: true}, grpc.WithChainUnaryInterceptor(look))
	m := newMessage("1", 1)
	m.Body = []byte(`{"a":"` + strings.Repeat("long ", 10_000) + `"}`)
	if err := w.publisher.Publish(testContext(t), m); err != nil {
		t.Fatal(err)
	}
	w.expectHistory(t, []*publish.Message{m})
	if !compressed.Load() {
		t.Error("it was not compressed")
	}
}

func TestCloseSendsWhatWasHandedOver(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{DelayThreshold: time.Second})
	w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindDelay, Milliseconds: 50})
	a, b := newMessages("a", 20), newMessages("b", 20)
	all := enqueue(testContext(t), w.publisher, append(append([]*publish.Message{}, a...), b...)...)
	if err := w.publisher.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		select {
		case err := <-p.answer:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Fatal("Close returned before everything was answered")
		}
	}
	w.expectHistory(t, a, b)
	if err := w.publisher.Publish(testContext(t), newMessage("c", 1)); err == nil {
		t.Error("a closed publisher publishes")
	}
	if err := w.publisher.Close(); err != nil {
		t.Error("closing twice:", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	_, err := googlepubsub.NewPublisher(w.client, googlepubsub.PublisherConfig{
		Depth: -1, CountThreshold: 1001, DelayThreshold: time.Minute, UnorderedTopics: []string{"no topic"},
	})
	for _, part := range []string{"Depth", "CountThreshold", "DelayThreshold", "UnorderedTopics"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("nothing about %s in: %v", part, err)
		}
	}
	if _, err := googlepubsub.NewPublisher(nil, googlepubsub.PublisherConfig{}); err == nil {
		t.Error("no error without a client")
	}
	if depth := w.publisher.Depth(); depth != 100 {
		t.Errorf("default depth is %d", depth)
	}
}

// A message waits for company that does not come.
func TestDelayThresholdIsTheFloorOfTheLatency(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	w := newEnv(t, googlepubsub.PublisherConfig{DelayThreshold: delay})
	began := time.Now()
	if err := w.publisher.Publish(testContext(t), newMessage("1", 1)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("took %v", took)
	}
}
