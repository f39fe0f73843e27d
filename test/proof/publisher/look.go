package publisher

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Look looks for an event at the broker of a fresh set, until ctx ends. It makes nothing that an event would need.
type Look func(ctx context.Context, f *Fresh, topic, id string) error

// LookAtNATS reads the stream that takes the topic, from its beginning.
func LookAtNATS(ctx context.Context, f *Fresh, topic, id string) error {
	conn, err := nats.Connect("nats://"+f.Address("NATS"), nats.Timeout(eventually.Patience))
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	name, err := js.StreamNameBySubject(ctx, topic)
	if err != nil {
		return fmt.Errorf("the stream of %s: %w", topic, err)
	}
	consumer, err := js.OrderedConsumer(ctx, name, jetstream.OrderedConsumerConfig{FilterSubjects: []string{topic}})
	if err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	defer messages.Stop()
	for {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("NATS: %w", err)
		}
		if message.Headers().Get("event_id") == id {
			return nil
		}
	}
}

// LookAtPubSub reads the subscription that the marketplace's setup has made for its compliance consumer, which nobody
// else reads as long as no worker runs.
func LookAtPubSub(ctx context.Context, f *Fresh, topic, id string) error {
	client, err := pubsub.NewClient(ctx, "packfinderz", option.WithEndpoint(f.Address("PUBSUB")),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		return fmt.Errorf("a client of Pub/Sub: %w", err)
	}
	defer client.Close()
	subscriber := client.Subscriber(topic + "-sub")
	about, err := client.SubscriptionAdminClient.GetSubscription(ctx,
		&pubsubpb.GetSubscriptionRequest{Subscription: subscriber.String()})
	if err != nil {
		return fmt.Errorf("the subscription %s-sub: %w", topic, err)
	}
	if want := client.Publisher(topic).String(); about.GetTopic() != want {
		return fmt.Errorf("the subscription %s-sub is one of %s, not of %s", topic, about.GetTopic(), want)
	}
	receiving, found := context.WithCancelCause(ctx)
	defer found(nil)
	err = subscriber.Receive(receiving, func(_ context.Context, message *pubsub.Message) {
		message.Ack()
		if message.Attributes["event_id"] == id {
			found(errFound)
		}
	})
	if errors.Is(context.Cause(receiving), errFound) {
		return nil
	}
	return errors.Join(err, ctx.Err())
}

var errFound = errors.New("found")
