package relay_test

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	cenats "github.com/cloudevents/sdk-go/protocol/nats_jetstream/v2"
	cepubsub "github.com/cloudevents/sdk-go/protocol/pubsub/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// arrived is a message as a consumer gets it: the SDK's view of it, and ours.
type arrived struct {
	binding    binding.Message
	attributes map[string]string // as the publisher's package reads them
	wire       map[string]string // as they came
	body       []byte
}

// brokerEnv is a broker with two topics.
type brokerEnv struct {
	publisher publish.Publisher
	// read waits for so many messages of a topic.
	read func(t *testing.T, topic string, count int) []arrived
}

// natsEnv is the server of `make services`.
func natsEnv(t *testing.T, topics ...string) *brokerEnv {
	t.Helper()
	conn, err := natsjetstream.Connect(services.NATS(), nats.Timeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	for _, topic := range topics {
		if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: topic, Subjects: []string{topic}}); err != nil {
			t.Fatalf("%v\nIs NATS running? `make services` starts it.", err)
		}
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, topic := range topics {
			_ = js.DeleteStream(context.Background(), topic)
		}
		_ = publisher.Close()
	})
	return &brokerEnv{publisher: publisher, read: func(t *testing.T, topic string, count int) (all []arrived) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		consumer, err := js.OrderedConsumer(ctx, topic, jetstream.OrderedConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		messages, err := consumer.Messages()
		if err != nil {
			t.Fatal(err)
		}
		defer messages.Stop()
		for len(all) < count {
			message, err := messages.Next(jetstream.NextContext(ctx))
			if err != nil {
				t.Fatalf("%d of %d messages: %v", len(all), count, err)
			}
			wire := map[string]string{}
			for name, values := range message.Headers() {
				wire[name] = values[0]
			}
			all = append(all, arrived{
				binding: cenats.NewMessage(&nats.Msg{Subject: message.Subject(), Header: message.Headers(), Data: message.Data()}),
				wire:    wire, attributes: natsjetstream.Attributes(message.Headers()), body: message.Data(),
			})
		}
		return all
	}}
}

// pubsubEnv is an emulator of its own.
func pubsubEnv(t *testing.T, topics ...string) *brokerEnv {
	t.Helper()
	_, client := pubsubtest.Start(t, topics...)
	for _, topic := range topics {
		if _, err := client.SubscriptionAdminClient.CreateSubscription(t.Context(), &pb.Subscription{
			Name: subscription(topic), Topic: "projects/p/topics/" + topic, AckDeadlineSeconds: 600,
		}); err != nil {
			t.Fatal(err)
		}
	}
	publisher, err := googlepubsub.NewPublisher(client, googlepubsub.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	return &brokerEnv{publisher: publisher, read: func(t *testing.T, topic string, count int) (all []arrived) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		for len(all) < count {
			answer, err := client.SubscriptionAdminClient.Pull(ctx, &pb.PullRequest{
				Subscription: subscription(topic), MaxMessages: 100,
			})
			if err != nil {
				t.Fatalf("%d of %d messages: %v", len(all), count, err)
			}
			var acknowledged []string
			for _, received := range answer.GetReceivedMessages() {
				message := received.GetMessage()
				acknowledged = append(acknowledged, received.GetAckId())
				all = append(all, arrived{
					binding: cepubsub.NewMessage(&pubsub.Message{
						ID: message.GetMessageId(), Data: message.GetData(), Attributes: message.GetAttributes(),
					}),
					wire: message.GetAttributes(), attributes: message.GetAttributes(), body: message.GetData(),
				})
			}
			if len(acknowledged) == 0 {
				continue
			}
			if err := client.SubscriptionAdminClient.Acknowledge(ctx, &pb.AcknowledgeRequest{
				Subscription: subscription(topic), AckIds: acknowledged,
			}); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}}
}

func subscription(topic string) string { return fmt.Sprintf("projects/p/subscriptions/%s-s", topic) }
