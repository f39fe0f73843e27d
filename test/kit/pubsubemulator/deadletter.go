package pubsubemulator

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

const (
	// pstest's own dead lettering does not take the message off the subscription and so publishes it
	// to the dead letter topic again every ten milliseconds; it also counts the deliveries of all
	// subscriptions together. This offset keeps it from ever starting; the broker does the work.
	deadLetterOffset = 1 << 30

	// defaultDeliveryAttempts is the service's limit for a policy that sets none.
	defaultDeliveryAttempts = 5
)

// hideDeadLetterLimit raises the limit of a subscription that is on its way into pstest.
func hideDeadLetterLimit(sub *pb.Subscription) {
	if policy := sub.GetDeadLetterPolicy(); policy != nil {
		policy.MaxDeliveryAttempts += deadLetterOffset
	}
}

// showDeadLetterLimit copies a subscription that comes out of pstest, with the limit its owner set.
func showDeadLetterLimit(sub *pb.Subscription) *pb.Subscription {
	shown := cloneOf(sub)
	if policy := shown.GetDeadLetterPolicy(); policy != nil {
		policy.MaxDeliveryAttempts -= deadLetterOffset
	}
	return shown
}

// deadLetterTopic returns where a message goes that was delivered attempts times, or "" to deliver it
// once more.
func (s *subscription) deadLetterTopic(attempts int32) string {
	policy := s.proto.GetDeadLetterPolicy()
	if policy == nil {
		return ""
	}
	limit := policy.GetMaxDeliveryAttempts() - deadLetterOffset
	if limit < 1 {
		limit = defaultDeliveryAttempts
	}
	if attempts < limit {
		return ""
	}
	return policy.GetDeadLetterTopic()
}

// deadLetter publishes the message to the dead letter topic, with the attributes that the service
// adds, and takes it off the subscription. In that order: a kill in between makes two of it, not none.
func (b *broker) deadLetter(ctx context.Context, sub *subscription, target string, m *pb.PubsubMessage,
	d *delivery,
) error {
	from := b.origins[m.GetMessageId()]
	attributes := maps.Clone(m.GetAttributes())
	if attributes == nil {
		attributes = map[string]string{}
	}
	_, project, _ := strings.Cut(sub.proto.GetName(), "projects/")
	project, short, _ := strings.Cut(project, "/subscriptions/")
	attributes["CloudPubSubDeadLetterSourceDeliveryCount"] = strconv.Itoa(int(d.attempts))
	attributes["CloudPubSubDeadLetterSourceSubscription"] = short
	attributes["CloudPubSubDeadLetterSourceSubscriptionProject"] = project
	attributes["CloudPubSubDeadLetterSourceTopicPublishTime"] = from.publishTime.Format(time.RFC3339Nano)
	dead := &pb.PubsubMessage{Data: m.GetData(), Attributes: attributes, OrderingKey: m.GetOrderingKey()}
	if _, _, err := b.accept(ctx, target, []*pb.PubsubMessage{dead}); err != nil {
		return err
	}
	return b.settle(ctx, sub, []string{d.ackID})
}
