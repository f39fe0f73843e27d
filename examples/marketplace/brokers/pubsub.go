package brokers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/examples/marketplace/consumers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
	"github.com/posthaste-dev/posthaste/outbox"
)

// pubsubBroker is a topic each, and a subscription of the domain's for each consumer.
type pubsubBroker struct {
	values *config.Values
	client *pubsub.Client
}

func openPubSub(ctx context.Context, values *config.Values) (*pubsubBroker, error) {
	var options []option.ClientOption
	plain := settings.AllowsInsecure(values, "pubsub")
	if emulator := os.Getenv(emulatorVariable); emulator != "" && !plain && !settings.OnThisMachine(emulator) {
		return nil, fmt.Errorf("pubsub: %s leads to another machine, and Google's client speaks plain text with an "+
			"emulator: "+
			"unset it; or allow plain text with insecure.allow: pubsub", emulatorVariable)
	}
	if address := settings.PubSubAddress.Get(values); address != "" {
		options = append(options, option.WithEndpoint(address))
		if plain || settings.OnThisMachine(address) { // an emulator
			options = append(options, option.WithoutAuthentication(),
				option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
		}
	}
	client, err := pubsub.NewClient(context.WithoutCancel(ctx), settings.PubSubProject.Get(values), options...)
	if err != nil {
		return nil, fmt.Errorf("pubsub: %w", err)
	}
	return &pubsubBroker{values: values, client: client}, nil
}

// emulatorVariable is what Google's client looks at by itself.
const emulatorVariable = "PUBSUB_EMULATOR_HOST"

// subscription is the name of a consumer's.
func (b *pubsubBroker) subscription(c *consumer.Consumer) string {
	if c.Name() == consumers.ComplianceName {
		return settings.InboxSubscription.Get(b.values)
	}
	return settings.OrdersSubscription.Get(b.values)
}

// Prepare makes what Terraform would make elsewhere. Order is asked for when a subscription is made, or never.
func (b *pubsubBroker) Prepare(ctx context.Context, consumers ...*consumer.Consumer) error {
	for _, name := range topics(b.values) {
		_, err := b.client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: b.topic(name)})
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return fmt.Errorf("pubsub: make the topic %s: %w", name, err)
		}
	}
	// Dead letters that nobody subscribes to are gone.
	dead := settings.DeadLetters(b.values)
	if err := b.subscribe(ctx, &pubsubpb.Subscription{Name: dead, Topic: dead}); err != nil {
		return err
	}
	for _, c := range consumers {
		err := b.subscribe(ctx, &pubsubpb.Subscription{
			Name: b.subscription(c), Topic: daemon.TopicDefault.Get(b.values), EnableMessageOrdering: true,
			RetryPolicy: &pubsubpb.RetryPolicy{
				MinimumBackoff: durationpb.New(time.Second), MaximumBackoff: durationpb.New(time.Minute),
			},
			DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{
				DeadLetterTopic: b.topic(dead), MaxDeliveryAttempts: int32(c.MaxAttempts()),
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *pubsubBroker) subscribe(ctx context.Context, subscription *pubsubpb.Subscription) error {
	id := subscription.GetName()
	subscription.Name, subscription.Topic = b.client.Subscriber(id).String(), b.topic(subscription.GetTopic())
	subscription.ExpirationPolicy = &pubsubpb.ExpirationPolicy{} // never
	_, err := b.client.SubscriptionAdminClient.CreateSubscription(ctx, subscription)
	if status.Code(err) == codes.AlreadyExists {
		var there *pubsubpb.Subscription
		there, err = b.client.SubscriptionAdminClient.GetSubscription(ctx,
			&pubsubpb.GetSubscriptionRequest{Subscription: subscription.GetName()})
		if err == nil && there.GetTopic() != subscription.GetTopic() {
			return fmt.Errorf("pubsub: the subscription %s is one of %s: give ours another name", id, there.GetTopic())
		}
	}
	if err != nil {
		return fmt.Errorf("pubsub: make the subscription %s: %w", id, err)
	}
	return nil
}

func (b *pubsubBroker) topic(id string) string { return b.client.Publisher(id).String() }

func (b *pubsubBroker) Run(ctx context.Context, c *consumer.Consumer) error {
	return googlepubsub.Consume(ctx, b.client, c, googlepubsub.ConsumeConfig{Subscription: b.subscription(c)})
}

// Watch has a subscription of its own, which goes when it ends. One that was left behind goes by itself after a day,
// the shortest time that there is.
func (b *pubsubBroker) Watch(ctx context.Context, topic string, begin func() error, see func(Message) bool) error {
	id := "watch-" + outbox.NewID().String()
	subscription := &pubsubpb.Subscription{
		Name: b.client.Subscriber(id).String(), Topic: b.topic(topic),
		ExpirationPolicy:         &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(24 * time.Hour)},
		MessageRetentionDuration: durationpb.New(10 * time.Minute),
	}
	if _, err := b.client.SubscriptionAdminClient.CreateSubscription(ctx, subscription); err != nil {
		return fmt.Errorf("pubsub: watch %s: %w", topic, err)
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = b.client.SubscriptionAdminClient.DeleteSubscription(ending,
			&pubsubpb.DeleteSubscriptionRequest{Subscription: subscription.GetName()})
	}()
	if err := begin(); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var one sync.Mutex
	err := b.client.Subscriber(id).Receive(watching, func(_ context.Context, message *pubsub.Message) {
		one.Lock()
		defer one.Unlock()
		message.Ack()
		if watching.Err() == nil && see(Message{Attributes: message.Attributes, Body: message.Data}) {
			stop()
		}
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("pubsub: watch %s: %w", topic, err)
	}
	return nil
}

func (b *pubsubBroker) Ready(context.Context) error {
	connection := b.client.SubscriptionAdminClient.Connection() //nolint:staticcheck // any of its connections will do
	if connection.GetState() == connectivity.TransientFailure {
		return errNotConnected
	}
	return nil
}

func (b *pubsubBroker) Close() error {
	if err := b.client.Close(); err != nil {
		return fmt.Errorf("pubsub: %w", err)
	}
	return nil
}
