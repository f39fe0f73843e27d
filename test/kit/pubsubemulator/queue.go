package pubsubemulator

import (
	"context"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// mostInside is how many messages of a subscription pstest has at a time. It looks at all of them for each that it
// delivers, so that with thousands it gets slower than whoever publishes, and never catches up. The others wait in the
// topic's queue: they are in the journal, and so accepted.
const mostInside = 500

// queued is a message on its way to the subscriptions.
type queued struct {
	record *Message
	acked  []string // subscriptions that have acknowledged it, before a restart
}

// release lets a topic's subscriptions see journalled messages, as soon as there is room. Without a subscription nobody
// can ever receive them, and pstest would only hold them in memory.
func (b *broker) release(ctx context.Context, topicName string, messages ...queued) error {
	t := b.topics[topicName]
	if len(t.subs) == 0 {
		return nil
	}
	t.queue = append(t.queue, messages...)
	return b.fill(ctx, topicName, mostInside)
}

// flush hands everything that is queued to pstest. Whatever changes topics and subscriptions needs it there: pstest
// decides which subscription gets what was published before.
func (b *broker) flush(ctx context.Context) error {
	for name := range b.topics {
		if err := b.fill(ctx, name, int(^uint(0)>>1)); err != nil {
			return err
		}
	}
	return nil
}

// fill hands queued messages to pstest until every subscription has as many as it may.
func (b *broker) fill(ctx context.Context, topicName string, most int) error {
	t := b.topics[topicName]
	if t == nil {
		return nil
	}
	handed := false
	for len(t.queue) > 0 && t.inside() < most {
		if err := b.handOver(ctx, topicName, t.queue[0]); err != nil {
			return err
		}
		t.queue[0] = queued{}
		t.queue = t.queue[1:]
		handed = true
	}
	if handed {
		for _, sub := range t.subs {
			sub.wake()
		}
	}
	return nil
}

// inside is the smallest number of messages that pstest has for one of the subscriptions: one that nobody reads must
// not starve the others. Nobody tells which messages pstest has dropped because of a filter.
func (t *topic) inside() int {
	least := -1
	for _, sub := range t.subs {
		if sub.proto.GetFilter() != "" {
			return 0
		}
		if least < 0 || sub.inside < least {
			least = sub.inside
		}
	}
	return max(0, least)
}

func (b *broker) handOver(ctx context.Context, topicName string, m queued) error {
	res, err := b.inner.GServer.Publish(ctx, &pb.PublishRequest{Topic: topicName, Messages: []*pb.PubsubMessage{{
		Data: m.record.Data, Attributes: m.record.Attributes, OrderingKey: m.record.OrderingKey,
	}}})
	if err != nil {
		return status.Errorf(codes.Internal, "pstest refused a journalled message: %v", err)
	}
	for _, id := range res.GetMessageIds() {
		b.origins[id] = origin{id: m.record.ID, publishTime: m.record.PublishTime}
	}
	for _, sub := range b.topics[topicName].subs {
		sub.inside++
	}
	for _, name := range m.acked {
		// A message that was never delivered is acknowledged by its bare id.
		if _, err := b.inner.GServer.Acknowledge(ctx, &pb.AcknowledgeRequest{
			Subscription: name, AckIds: res.GetMessageIds(),
		}); err != nil {
			return err
		}
		if sub := b.subs[name]; sub != nil {
			sub.inside--
		}
	}
	return nil
}
