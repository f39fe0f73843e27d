package pubsub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

const (
	// A request may take so long, and a publish a little longer, so that a message of ten megabytes gets through.
	requestTimeout  = 50 * time.Second
	publishDeadline = time.Minute
	// quiet is how long a subscription has nothing to pull until it is taken for empty.
	quiet = 5 * time.Second
)

// suite has the publisher go through the suite of all publishers.
func (s *site) suite(ctx context.Context, report *Report) {
	for _, result := range relaytest.Check(ctx, s.harness()) {
		switch {
		case len(result.Problems) > 0:
			report.SuiteFailed++
			s.sayf("the case %q failed: %s", result.Case, strings.Join(result.Problems, "; "))
		case result.Skipped != "":
			report.SuiteSkipped++
			s.sayf("the case %q is left out: %s", result.Case, result.Skipped)
		default:
			report.SuitePassed++
		}
	}
}

// harness is Pub/Sub as the suite sees it.
func (s *site) harness() relaytest.Harness {
	taken := map[string]*taker{}
	fault := func(begin func(), ends ...func()) relaytest.Fault {
		return func(context.Context, string) (func(context.Context) error, error) {
			begin()
			return func(context.Context) error {
				for _, end := range ends {
					end()
				}
				return nil
			}, nil
		}
	}
	return relaytest.Harness{
		Open: func(ctx context.Context) (publish.Publisher, func() error, error) {
			return s.publisher(context.WithoutCancel(ctx), googlepubsub.PublisherConfig{Timeout: requestTimeout})
		},
		MakeTopic: func(ctx context.Context, topic string) error {
			taken[topic] = &taker{site: s, subscription: topic, seen: map[string]bool{}}
			return errors.Join(s.createTopic(ctx, topic), s.subscribe(ctx, topic, topic, ""))
		},
		RemoveTopic: func(ctx context.Context, topic string) error {
			return errors.Join(
				s.admin.SubscriptionAdminClient.DeleteSubscription(ctx,
					&pb.DeleteSubscriptionRequest{Subscription: s.subscriptionName(topic)}),
				s.admin.TopicAdminClient.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: s.topicName(topic)}))
		},
		Arrived: func(ctx context.Context, topic string) ([]relaytest.Arrived, error) {
			return taken[topic].take(ctx)
		},
		MaxBytes: 10_000_000,
		Size: func(m *publish.Message) int {
			return proto.Size(&pb.PubsubMessage{Data: m.Body, Attributes: m.Attributes, OrderingKey: m.Key}) + 5 + 1 +
				protowire.SizeBytes(len(s.topicName(m.Topic)))
		},
		Deadline: publishDeadline, Grace: publishDeadline, Recovery: 2 * time.Minute,
		Stop: fault(s.wire.block, s.wire.heal), Slow: fault(s.wire.hush, s.wire.heal),
		LoseAck: fault(s.wire.hush, s.wire.cut, s.wire.heal),
		Cannot: map[relaytest.Ability]string{
			relaytest.Dedupe:        "Pub/Sub gives every accepted message an id of its own and looks at no id of ours",
			relaytest.DenyAuth:      "the proof has one identity and takes no roles from it",
			relaytest.RejectMessage: "Pub/Sub refuses a single message only by a schema, and then others too",
		},
	}
}

// A taker takes what arrives at a subscription, and remembers it.
type taker struct {
	site         *site
	subscription string
	seen         map[string]bool // by Pub/Sub's own id
	all          []relaytest.Arrived
}

// take pulls until nothing more comes.
func (t *taker) take(ctx context.Context) ([]relaytest.Arrived, error) {
	client, name := t.site.admin.SubscriptionAdminClient, t.site.subscriptionName(t.subscription)
	for {
		patience, cancel := context.WithTimeout(ctx, quiet)
		answer, err := client.Pull(patience, &pb.PullRequest{Subscription: name, MaxMessages: 1000})
		cancel()
		if status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) ||
			err == nil && len(answer.GetReceivedMessages()) == 0 {
			return t.all, ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("pull from %s: %w", t.subscription, err)
		}
		var ids []string
		for _, received := range answer.GetReceivedMessages() {
			ids = append(ids, received.GetAckId())
			if m := received.GetMessage(); !t.seen[m.GetMessageId()] {
				t.seen[m.GetMessageId()] = true
				t.all = append(t.all, relaytest.Arrived{
					Body: m.GetData(), Attributes: m.GetAttributes(), Key: m.GetOrderingKey(),
				})
			}
		}
		if err := client.Acknowledge(ctx, &pb.AcknowledgeRequest{Subscription: name, AckIds: ids}); err != nil {
			return nil, fmt.Errorf("acknowledge to %s: %w", t.subscription, err)
		}
	}
}
