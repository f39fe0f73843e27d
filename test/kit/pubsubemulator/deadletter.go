package pubsubemulator

import (
	"maps"
	"strconv"
	"strings"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultDeliveryAttempts is the service's limit for a policy that sets none.
const defaultDeliveryAttempts = 5

// deadLetterTopic returns where a message goes that has failed that many times, or "" to deliver it once more. A
// topic that is not there gets nothing, and the message stays.
func (b *broker) deadLetterTopic(sub *subscription, failures int32) string {
	policy := sub.proto.GetDeadLetterPolicy()
	if policy == nil {
		return ""
	}
	limit := policy.GetMaxDeliveryAttempts()
	if limit < 1 {
		limit = defaultDeliveryAttempts
	}
	if failures < limit || b.topics[policy.GetDeadLetterTopic()] == nil {
		return ""
	}
	return policy.GetDeadLetterTopic()
}

// deadLetter publishes a message that has failed for the last time to the dead letter topic, with the attributes that
// the service adds, and takes it off the subscription. In that order: a kill in between makes two of it, not none.
func (b *broker) deadLetter(sub *subscription, it *item, now time.Time) (done bool, err error) {
	target := b.deadLetterTopic(sub, it.failures)
	if target == "" {
		return false, nil
	}
	attributes := maps.Clone(it.record.Attributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	_, project, _ := strings.Cut(sub.proto.GetName(), "projects/")
	project, short, _ := strings.Cut(project, "/subscriptions/")
	attributes["CloudPubSubDeadLetterSourceDeliveryCount"] = strconv.Itoa(int(it.failures))
	attributes["CloudPubSubDeadLetterSourceSubscription"] = short
	attributes["CloudPubSubDeadLetterSourceSubscriptionProject"] = project
	attributes["CloudPubSubDeadLetterSourceTopicPublishTime"] = it.record.PublishTime.Format(time.RFC3339Nano)
	dead := &pb.PubsubMessage{Data: it.record.Data, Attributes: attributes, OrderingKey: it.record.OrderingKey}
	if _, _, err := b.accept(target, []*pb.PubsubMessage{dead}); err != nil {
		return false, err
	}
	if err := b.journal.appendAck(sub.proto.GetName(), []string{it.record.ID}); err != nil {
		return false, status.Errorf(codes.Internal, "the dead letter was not journalled: %v", err)
	}
	sub.finish(it, gone, now)
	return true, nil
}
