package pubsub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
)

// Plan says where the proof runs and for how long.
type Plan struct {
	// Project is Google's id of a project. There is no default.
	Project string
	// Endpoint is host:port: name the one of a region, or there is no order.
	Endpoint string
	// Emulator says that the endpoint has neither TLS nor credentials.
	Emulator bool
	// SpareConsumer leaves the consumer's connections alone. Google's emulator (0.8.20) needs it: when a stream is cut, it
	// never again delivers the ordering keys that were out on it, not to another client either.
	SpareConsumer bool
	// Chaos is how long connections break while events flow.
	Chaos time.Duration
	// Keys is how many aggregates have events then.
	Keys int
	// Pause is how long connections are left alone between two faults, and a fault lasts, at most.
	Pause time.Duration
	Seed  uint64
	// Progress is told what happens.
	Progress io.Writer
}

// A site is what the proof has in the project.
type site struct {
	plan   Plan
	prefix string
	wire   *wire
	admin  *pubsub.Client // past all faults

	mu            sync.Mutex
	topics        []string
	subscriptions []string
}

func newSite(ctx context.Context, plan Plan) (*site, error) {
	s := &site{
		plan: plan, prefix: "posthaste-proof-" + strings.ToLower(rand.Text()[:8]), wire: newWire(),
	}
	var err error
	s.admin, err = s.client(ctx, nil)
	return s, err
}

func (s *site) sayf(format string, args ...any) {
	fmt.Fprintf(s.plan.Progress, "proof-pubsub: "+format+"\n", args...)
}

// client makes a client over a wire, or past it.
func (s *site) client(ctx context.Context, over *wire) (*pubsub.Client, error) {
	soon := backoff.DefaultConfig
	soon.MaxDelay = 2 * time.Second
	options := []option.ClientOption{
		option.WithEndpoint(s.plan.Endpoint),
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: soon, MinConnectTimeout: 5 * time.Second,
		})),
	}
	if over != nil {
		options = append(options, option.WithGRPCDialOption(grpc.WithContextDialer(over.dial)))
	}
	if s.plan.Emulator {
		options = append(options, option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	}
	client, err := pubsub.NewClient(ctx, s.plan.Project, options...)
	if err != nil {
		return nil, fmt.Errorf("a client of %s at %s: %w", s.plan.Project, s.plan.Endpoint, err)
	}
	return client, nil
}

// publisher makes one with a client of its own, and what closes both.
func (s *site) publisher(ctx context.Context, config googlepubsub.PublisherConfig) (*googlepubsub.Publisher,
	func() error, error,
) {
	client, err := s.client(ctx, s.wire)
	if err != nil {
		return nil, nil, err
	}
	publisher, err := googlepubsub.NewPublisher(client, config)
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return publisher, func() error { return errors.Join(publisher.Close(), client.Close()) }, nil
}

func (s *site) topicName(id string) string { return "projects/" + s.plan.Project + "/topics/" + id }

func (s *site) subscriptionName(id string) string {
	return "projects/" + s.plan.Project + "/subscriptions/" + id
}

func (s *site) createTopic(ctx context.Context, id string) error {
	if _, err := s.admin.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: s.topicName(id)}); err != nil {
		return fmt.Errorf("create the topic %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics = append(s.topics, id)
	return nil
}

// subscribe creates a subscription with order. With a topic for dead letters it has a policy: then Pub/Sub counts, and
// what fails is given back to it and not tried again in the loop.
func (s *site) subscribe(ctx context.Context, id, topic, letters string) error {
	var policy *pb.DeadLetterPolicy
	if letters != "" {
		policy = &pb.DeadLetterPolicy{DeadLetterTopic: s.topicName(letters), MaxDeliveryAttempts: 100}
	}
	_, err := s.admin.SubscriptionAdminClient.CreateSubscription(ctx, &pb.Subscription{
		Name: s.subscriptionName(id), Topic: s.topicName(topic), EnableMessageOrdering: true, AckDeadlineSeconds: 60,
		DeadLetterPolicy: policy,
		RetryPolicy: &pb.RetryPolicy{
			MinimumBackoff: durationpb.New(time.Second), MaximumBackoff: durationpb.New(10 * time.Second),
		},
	})
	if err != nil {
		return fmt.Errorf("create the subscription %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriptions = append(s.subscriptions, id)
	return nil
}

// remove deletes everything that was created, and tells how much is left.
func (s *site) remove(ctx context.Context) (left int) {
	s.mu.Lock()
	subscriptions, topics := slices.Clone(s.subscriptions), slices.Clone(s.topics)
	s.mu.Unlock()
	for _, id := range subscriptions {
		left += s.gone("subscription "+id, s.admin.SubscriptionAdminClient.DeleteSubscription(ctx,
			&pb.DeleteSubscriptionRequest{Subscription: s.subscriptionName(id)}))
	}
	for _, id := range topics {
		left += s.gone("topic "+id,
			s.admin.TopicAdminClient.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: s.topicName(id)}))
	}
	return left
}

// gone tells whether something that was to be deleted is left.
func (s *site) gone(what string, err error) int {
	if err == nil || status.Code(err) == codes.NotFound {
		return 0
	}
	s.sayf("delete it by hand, the %s is still there: %v", what, err)
	return 1
}
