package torture

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// pubSubStage is topics of its own with an ordered subscription each. Pub/Sub cannot be read backwards, and Google's
// emulator delivers slowly what has piled up, so messages are received while the run goes on.
type pubSubStage struct {
	client *pubsub.Client
	topics []string
	stop   context.CancelFunc
	group  sync.WaitGroup

	mu      sync.Mutex
	seen    map[string]bool // messages, by topic and id: Pub/Sub delivers at least once
	arrived map[outbox.ID]bool
	list    []check.Delivery
	times   []int64
	last    time.Time
	broken  error
	// without is how long nothing must have arrived before the rest is taken for lost.
	without time.Duration
}

// pubSubClient connects to a project: pubsub://project, or pubsub://project?emulator=host:port.
func pubSubClient(ctx context.Context, address *url.URL, options ...option.ClientOption) (*pubsub.Client, error) {
	if emulator := address.Query().Get("emulator"); emulator != "" {
		options = append(options,
			option.WithEndpoint(emulator), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		)
	}
	client, err := pubsub.NewClient(ctx, address.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("torture: connect to Pub/Sub: %w", err)
	}
	return client, nil
}

// soon is how the witness comes back to a broker that was away: by itself it would wait for up to two minutes, and miss
// the end of the run.
var soon = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, MaxDelay: time.Second},
	MinConnectTimeout: 5 * time.Second,
}

func openPubSub(ctx context.Context, address *url.URL, _ string, topics []string) (stage, error) {
	client, err := pubSubClient(ctx, address, option.WithGRPCDialOption(grpc.WithConnectParams(soon)))
	if err != nil {
		return nil, err
	}
	receiving, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &pubSubStage{
		client: client, stop: stop, seen: map[string]bool{}, arrived: map[outbox.ID]bool{}, last: time.Now(),
		without: quietWithout,
	}
	for _, topic := range topics {
		if err := s.create(ctx, topic); err != nil {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return nil, errors.Join(err, s.close(closing))
		}
		s.topics = append(s.topics, topic)
		s.group.Go(func() { s.receive(receiving, topic) })
	}
	return s, nil
}

func (s *pubSubStage) topic(id string) string {
	return fmt.Sprintf("projects/%s/topics/%s", s.client.Project(), id)
}

func (s *pubSubStage) subscription(topic string) string {
	return fmt.Sprintf("projects/%s/subscriptions/%s", s.client.Project(), topic)
}

// create makes a topic and its subscription, which has the same name.
func (s *pubSubStage) create(ctx context.Context, topic string) error {
	if _, err := s.client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: s.topic(topic)}); err != nil {
		return fmt.Errorf("torture: create a topic: %w", err)
	}
	_, err := s.client.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name: s.subscription(topic), Topic: s.topic(topic), EnableMessageOrdering: true,
		AckDeadlineSeconds: 10, // the least: what a broken connection had comes again after that
	})
	if err != nil {
		return errors.Join(fmt.Errorf("torture: create a subscription: %w", err), s.remove(ctx, topic))
	}
	return nil
}

// receive takes messages until the run is over, also when the broker goes away and comes back.
func (s *pubSubStage) receive(ctx context.Context, topic string) {
	subscriber := s.client.Subscriber(s.subscription(topic))
	for ctx.Err() == nil {
		err := subscriber.Receive(ctx, func(_ context.Context, m *pubsub.Message) {
			s.take(topic, m, time.Now())
			m.Ack()
		})
		if err != nil {
			_ = wait.For(ctx, 100*time.Millisecond) // it may be away; a subscription that is gone shows as lost messages
		}
	}
}

// take writes down an arrival. Another copy of the same message is the broker's, and of no interest: relays are checked
// by what they sent.
func (s *pubSubStage) take(topic string, m *pubsub.Message, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[topic+"/"+m.ID] {
		return
	}
	s.seen[topic+"/"+m.ID] = true
	id, err := outbox.ParseID(m.Attributes["event_id"])
	if err != nil {
		s.broken = errors.Join(s.broken, fmt.Errorf("torture: message %s has no event_id: %w", m.ID, err))
		return
	}
	own := map[string]string{}
	for name, value := range m.Attributes {
		if !reserved[name] {
			own[name] = value
		}
	}
	s.list = append(s.list, check.Delivery{
		Index: uint64(len(s.list) + 1), Request: requestOf(m.Attributes["redelivered"]),
		ID: id, Type: m.Attributes["event_type"], Topic: topic,
		Key: m.Attributes["aggregate_type"] + "/" + m.Attributes["aggregate_id"], Payload: check.SumOf(m.Data),
		Headers: sumOfHeaders(own),
	})
	s.times = append(s.times, at.UnixMicro())
	s.arrived[id], s.last = true, at
}

func (s *pubSubStage) arrivals(context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(len(s.list)), nil
}

func (s *pubSubStage) arrivalsOf(events map[outbox.ID]bool) (messages uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, delivery := range s.list {
		if events[delivery.ID] {
			messages++
		}
	}
	return messages
}

// How long nothing must have arrived before the rest is taken for lost, also where a mutant loses some,
// and before no more copies are expected. The first only ends a hang: a machine may stand still for long.
const (
	quietWithout = 3 * time.Minute
	quietMutant  = 12 * time.Second
	quietWith    = time.Second
)

// deliveries waits for what must have arrived, and a little for copies of it.
func (s *pubSubStage) deliveries(ctx context.Context, published []outbox.ID) ([]check.Delivery, []int64, error) {
	called := time.Now()
	for {
		s.mu.Lock()
		missing := 0
		for _, id := range published {
			if !s.arrived[id] {
				missing++
			}
		}
		quiet := min(time.Since(s.last), time.Since(called))
		s.mu.Unlock()
		if missing == 0 && quiet > quietWith || quiet > s.without {
			break
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
	s.stop()
	s.group.Wait()
	return s.list, s.times, s.broken
}

func (s *pubSubStage) remove(ctx context.Context, topic string) error {
	err := s.client.TopicAdminClient.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: s.topic(topic)})
	if err != nil {
		return fmt.Errorf("torture: delete a topic: %w", err)
	}
	return nil
}

func (s *pubSubStage) close(ctx context.Context) error {
	s.stop()
	s.group.Wait() // before what they receive from is gone
	var problems []error
	for _, topic := range s.topics {
		err := s.client.SubscriptionAdminClient.DeleteSubscription(ctx,
			&pubsubpb.DeleteSubscriptionRequest{Subscription: s.subscription(topic)})
		if err != nil {
			problems = append(problems, fmt.Errorf("torture: delete a subscription: %w", err))
		}
		problems = append(problems, s.remove(ctx, topic))
	}
	return errors.Join(append(problems, s.leave())...)
}

func (s *pubSubStage) leave() error {
	s.stop()
	s.group.Wait()
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("torture: close the client: %w", err)
	}
	return nil
}

func pubSubPublisher(ctx context.Context, address *url.URL, _ string,
	deadline time.Duration,
) (publish.Publisher, func() error, error) {
	client, err := pubSubClient(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	publisher, err := googlepubsub.NewPublisher(client, googlepubsub.PublisherConfig{Timeout: deadline * 4 / 5})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return publisher, func() error { return errors.Join(publisher.Close(), client.Close()) }, nil
}
