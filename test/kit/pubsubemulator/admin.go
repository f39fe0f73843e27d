package pubsubemulator

import (
	"context"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// CreateTopic creates a topic.
func (b *broker) CreateTopic(ctx context.Context, req *pb.Topic) (*pb.Topic, error) {
	return perform[*pb.Topic](ctx, b, "CreateTopic", req)
}

// UpdateTopic changes the configuration of a topic.
func (b *broker) UpdateTopic(ctx context.Context, req *pb.UpdateTopicRequest) (*pb.Topic, error) {
	return perform[*pb.Topic](ctx, b, "UpdateTopic", req)
}

// DeleteTopic deletes a topic.
func (b *broker) DeleteTopic(ctx context.Context, req *pb.DeleteTopicRequest) (*emptypb.Empty, error) {
	return perform[*emptypb.Empty](ctx, b, "DeleteTopic", req)
}

// GetTopic returns the configuration of a topic.
func (b *broker) GetTopic(ctx context.Context, req *pb.GetTopicRequest) (*pb.Topic, error) {
	return read(ctx, b, req, b.inner.GServer.GetTopic)
}

// ListTopics lists the topics of a project.
func (b *broker) ListTopics(ctx context.Context, req *pb.ListTopicsRequest) (*pb.ListTopicsResponse, error) {
	return read(ctx, b, req, b.inner.GServer.ListTopics)
}

// ListTopicSubscriptions lists the names of the subscriptions of a topic.
func (b *broker) ListTopicSubscriptions(ctx context.Context, req *pb.ListTopicSubscriptionsRequest,
) (*pb.ListTopicSubscriptionsResponse, error) {
	return read(ctx, b, req, b.inner.GServer.ListTopicSubscriptions)
}

// DetachSubscription ends the flow of messages from a topic to a subscription.
func (b *broker) DetachSubscription(ctx context.Context, req *pb.DetachSubscriptionRequest,
) (*pb.DetachSubscriptionResponse, error) {
	return perform[*pb.DetachSubscriptionResponse](ctx, b, "DetachSubscription", req)
}

// CreateSubscription creates a subscription.
func (b *broker) CreateSubscription(ctx context.Context, req *pb.Subscription) (*pb.Subscription, error) {
	return perform[*pb.Subscription](ctx, b, "CreateSubscription", req)
}

// UpdateSubscription changes the configuration of a subscription.
func (b *broker) UpdateSubscription(ctx context.Context, req *pb.UpdateSubscriptionRequest) (*pb.Subscription, error) {
	return perform[*pb.Subscription](ctx, b, "UpdateSubscription", req)
}

// DeleteSubscription deletes a subscription with everything that it has not acknowledged.
func (b *broker) DeleteSubscription(ctx context.Context, req *pb.DeleteSubscriptionRequest) (*emptypb.Empty, error) {
	return perform[*emptypb.Empty](ctx, b, "DeleteSubscription", req)
}

// GetSubscription returns the configuration of a subscription.
func (b *broker) GetSubscription(ctx context.Context, req *pb.GetSubscriptionRequest) (*pb.Subscription, error) {
	return read(ctx, b, req, b.inner.GServer.GetSubscription)
}

// ListSubscriptions lists the subscriptions of a project.
func (b *broker) ListSubscriptions(ctx context.Context, req *pb.ListSubscriptionsRequest,
) (*pb.ListSubscriptionsResponse, error) {
	return read(ctx, b, req, b.inner.GServer.ListSubscriptions)
}
