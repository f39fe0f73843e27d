package googlepubsub_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/googleemulator"
)

// The contract of all publishers, with a broker that is not of our making. Its faults are the middleman's.
func TestContractWithGooglesEmulator(t *testing.T) {
	t.Parallel()
	addr := googleemulator.Start(t)
	middle := &middleman{}
	w := &googleEnv{client: newClient(t, addr), read: map[string][]*pb.PubsubMessage{}}
	harness := middle.harness(t, addr)
	harness.MakeTopic, harness.RemoveTopic = w.makeTopic, w.removeTopic
	harness.Arrived = func(ctx context.Context, topic string) ([]relaytest.Arrived, error) {
		eventually.True(t, "nothing is on its way to the broker", middle.quiet)
		return w.arrived(ctx, topic)
	}
	maps.Copy(harness.Cannot, map[relaytest.Ability]string{
		relaytest.Stop:     "Google's emulator forgets everything when it ends",
		relaytest.DenyAuth: "Google's emulator knows no credentials",
		relaytest.Abandon:  "Google's emulator cannot be stopped and started again",
		relaytest.Hang:     "it is about what is abandoned, too",
	})
	relaytest.TestPublisher(t, harness)
}

// googleEnv reads topics of Google's emulator through a subscription of each.
type googleEnv struct {
	client *pubsub.Client

	mu   sync.Mutex
	read map[string][]*pb.PubsubMessage // by topic
}

func subscriptionOf(topic string) string { return "projects/" + project + "/subscriptions/" + topic }

func (w *googleEnv) makeTopic(ctx context.Context, topic string) error {
	if _, err := w.client.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: topicName(topic)}); err != nil {
		return err
	}
	_, err := w.client.SubscriptionAdminClient.CreateSubscription(ctx, &pb.Subscription{
		Name: subscriptionOf(topic), Topic: topicName(topic), AckDeadlineSeconds: 600,
	})
	return err
}

func (w *googleEnv) removeTopic(ctx context.Context, topic string) error {
	err := w.client.SubscriptionAdminClient.DeleteSubscription(ctx, &pb.DeleteSubscriptionRequest{
		Subscription: subscriptionOf(topic),
	})
	if err != nil && status.Code(err) != codes.NotFound {
		return err
	}
	return w.client.TopicAdminClient.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: topicName(topic)})
}

// arrived is all that was published, in the order of the ids, which the emulator counts. It reads until a message
// comes that it has published itself, and then until nothing comes.
func (w *googleEnv) arrived(ctx context.Context, topic string) ([]relaytest.Arrived, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	const mark = "the-last-one"
	published, err := w.client.TopicAdminClient.Publish(ctx, &pb.PublishRequest{
		Topic: topicName(topic), Messages: []*pb.PubsubMessage{{Attributes: map[string]string{mark: mark}}},
	})
	if err != nil {
		return nil, err
	}
	for marked, more := false, true; !marked || more; {
		pulled, err := w.pull(ctx, topic)
		if err != nil {
			return nil, err
		}
		more = len(pulled) > 0
		for _, m := range pulled {
			marked = marked || m.GetMessageId() == published.GetMessageIds()[0]
			if m.GetAttributes()[mark] == "" {
				w.read[topic] = append(w.read[topic], m)
			}
		}
	}
	slices.SortFunc(w.read[topic], func(a, b *pb.PubsubMessage) int { return cmp.Compare(number(a), number(b)) })
	var all []relaytest.Arrived
	for _, m := range w.read[topic] {
		all = append(all, relaytest.Arrived{Body: m.GetData(), Attributes: m.GetAttributes(), Key: m.GetOrderingKey()})
	}
	return all, nil
}

func number(m *pb.PubsubMessage) int {
	n, err := strconv.Atoi(m.GetMessageId())
	if err != nil {
		panic(fmt.Sprintf("the id of a message is no number: %v", err))
	}
	return n
}

func (w *googleEnv) pull(ctx context.Context, topic string) ([]*pb.PubsubMessage, error) {
	res, err := w.client.SubscriptionAdminClient.Pull(ctx, &pb.PullRequest{
		Subscription: subscriptionOf(topic), MaxMessages: 1000,
		ReturnImmediately: true, //nolint:staticcheck // Deprecated for users of the service; there is nothing to wait for.
	})
	if err != nil || len(res.GetReceivedMessages()) == 0 {
		return nil, err
	}
	var messages []*pb.PubsubMessage
	var ids []string
	for _, r := range res.GetReceivedMessages() {
		messages, ids = append(messages, r.GetMessage()), append(ids, r.GetAckId())
	}
	return messages, w.client.SubscriptionAdminClient.Acknowledge(ctx, &pb.AcknowledgeRequest{
		Subscription: subscriptionOf(topic), AckIds: ids,
	})
}
