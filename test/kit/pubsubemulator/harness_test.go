package pubsubemulator_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

const (
	project = "projects/p"
	topicA  = project + "/topics/a"
	topicB  = project + "/topics/b"
	subA    = project + "/subscriptions/a"
	subB    = project + "/subscriptions/b"
)

func TestMain(m *testing.M) {
	os.Exit(goroutines.Run(m, goroutines.Linked, goroutines.Received))
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, dir string) *pubsubemulator.Server {
	t.Helper()
	server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server) })
	return server
}

func stop(t *testing.T, server *pubsubemulator.Server) {
	t.Helper()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// rpc is the service without the client library, which retries and batches.
type rpc struct {
	pb.PublisherClient
	pb.SubscriberClient
}

func dial(t *testing.T, server *pubsubemulator.Server) rpc {
	t.Helper()
	conn, err := grpc.NewClient(server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return rpc{pb.NewPublisherClient(conn), pb.NewSubscriberClient(conn)}
}

// newClient is the client library, as an application uses it.
func newClient(t *testing.T, server *pubsubemulator.Server) *pubsub.Client {
	t.Helper()
	client, err := pubsub.NewClient(testContext(t), "p", option.WithEndpoint(server.Addr()),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (c rpc) createTopics(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := c.CreateTopic(testContext(t), &pb.Topic{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
}

// createSub makes a subscription. What is delivered to it does not come again because the machine is busy.
func (c rpc) createSub(t *testing.T, sub *pb.Subscription) {
	t.Helper()
	if sub.GetAckDeadlineSeconds() == 0 {
		sub.AckDeadlineSeconds = 600
	}
	if _, err := c.CreateSubscription(testContext(t), sub); err != nil {
		t.Fatal(err)
	}
}

// publish sends one message for each text, in one call, and returns the ids.
func (c rpc) publish(t *testing.T, topic, key string, texts ...string) []string {
	t.Helper()
	req := &pb.PublishRequest{Topic: topic}
	for _, text := range texts {
		req.Messages = append(req.Messages, &pb.PubsubMessage{Data: []byte(text), OrderingKey: key})
	}
	res, err := c.Publish(testContext(t), req)
	if err != nil {
		t.Fatal(err)
	}
	return res.GetMessageIds()
}

// pull returns the n messages that come next; it does not acknowledge them.
func (c rpc) pull(t *testing.T, sub string, n int) []*pb.ReceivedMessage {
	t.Helper()
	ctx := testContext(t)
	var received []*pb.ReceivedMessage
	for len(received) < n {
		res, err := c.Pull(ctx, &pb.PullRequest{Subscription: sub, MaxMessages: int32(n - len(received))})
		if err != nil {
			t.Fatalf("pulled %d of %d messages: %v", len(received), n, err)
		}
		received = append(received, res.GetReceivedMessages()...)
	}
	return received
}

func (c rpc) ack(t *testing.T, sub string, received ...*pb.ReceivedMessage) {
	t.Helper()
	req := &pb.AcknowledgeRequest{Subscription: sub}
	for _, r := range received {
		req.AckIds = append(req.AckIds, r.GetAckId())
	}
	if _, err := c.Acknowledge(testContext(t), req); err != nil {
		t.Fatal(err)
	}
}

// drain pulls and acknowledges one message after the other: for an ordered subscription.
func (c rpc) drain(t *testing.T, sub string, n int) (texts, ids []string) {
	t.Helper()
	for range n {
		r := c.pull(t, sub, 1)[0]
		texts, ids = append(texts, string(r.GetMessage().GetData())), append(ids, r.GetMessage().GetMessageId())
		c.ack(t, sub, r)
	}
	return texts, ids
}

// expectEmpty checks that nothing can be pulled. The pull waits a moment by itself.
func (c rpc) expectEmpty(t *testing.T, sub string) {
	t.Helper()
	res, err := c.Pull(testContext(t), &pb.PullRequest{Subscription: sub, MaxMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.GetReceivedMessages()) > 0 {
		t.Errorf("%s still delivers %v", sub, res.GetReceivedMessages())
	}
}

// receive takes n different messages with the client library, acknowledging all.
func receive(t *testing.T, client *pubsub.Client, sub string, n int) []*pubsub.Message {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	var mu sync.Mutex
	var messages []*pubsub.Message
	seen := map[string]bool{}
	err := client.Subscriber(sub).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		mu.Lock()
		defer mu.Unlock()
		m.Ack()
		if !seen[m.ID] {
			seen[m.ID] = true
			messages = append(messages, m)
		}
		if len(seen) == n {
			cancel()
		}
	})
	if err != nil || len(messages) != n {
		t.Fatalf("received %d of %d messages: %v", len(messages), n, err)
	}
	return messages
}

func journal(t *testing.T, dir string) []pubsubemulator.Message {
	t.Helper()
	messages, err := pubsubemulator.ReadMessages(dir)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func expectEqual(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func numbers(prefix string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint(prefix, strconv.Itoa(i))
	}
	return texts
}
