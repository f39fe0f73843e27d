package hostile

import (
	"context"
	"fmt"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/publish"
)

const project = "hostile"

// connectPubSub makes a topic with a subscription, reads that, and returns the publisher that we ship.
func (o *outlet) connectPubSub(ctx context.Context, servers Servers) (publish.Publisher, error) {
	client, err := pubsub.NewClient(ctx, project, option.WithEndpoint(servers.PubSubAddr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		return nil, fmt.Errorf("hostile: Pub/Sub: %w", err)
	}
	o.closers = append(o.closers, func(context.Context) error { return client.Close() })
	topic := "projects/" + project + "/topics/" + o.topic
	subscription := "projects/" + project + "/subscriptions/" + o.topic
	if _, err := client.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: topic}); err != nil {
		return nil, fmt.Errorf("hostile: Pub/Sub: %w (is it running? `make services` starts it)", err)
	}
	o.closers = append(o.closers, func(ctx context.Context) error {
		return client.TopicAdminClient.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: topic})
	})
	if _, err := client.SubscriptionAdminClient.CreateSubscription(ctx, &pb.Subscription{
		Name: subscription, Topic: topic,
	}); err != nil {
		return nil, fmt.Errorf("hostile: Pub/Sub: %w", err)
	}
	o.closers = append(o.closers, func(ctx context.Context) error {
		return client.SubscriptionAdminClient.DeleteSubscription(ctx,
			&pb.DeleteSubscriptionRequest{Subscription: subscription})
	})
	reading, enough := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		ended <- client.Subscriber(subscription).Receive(reading, func(_ context.Context, message *pubsub.Message) {
			o.arrivals.add(message.PublishTime, message.Data, message.Attributes)
			message.Ack()
		})
	}()
	o.closers = append(o.closers, func(context.Context) error { enough(); return <-ended })
	publisher, err := googlepubsub.NewPublisher(client, googlepubsub.PublisherConfig{})
	if err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	o.closers = append(o.closers, func(context.Context) error { return publisher.Close() })
	return publisher, nil
}
