package pubsubemulator

import (
	"context"
	"strconv"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Publish accepts messages: when it answers, they are in the journal.
func (b *broker) Publish(ctx context.Context, req *pb.PublishRequest) (*pb.PublishResponse, error) {
	if len(req.GetMessages()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no messages to publish")
	}
	b.mu.Lock()
	ids, end, err := b.accept(ctx, req.GetTopic(), req.GetMessages())
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := b.journal.syncMessages(end); err != nil {
		return nil, status.Errorf(codes.Internal, "the journal is not on the disk: %v", err)
	}
	return &pb.PublishResponse{MessageIds: ids}, nil
}

// accept journals messages and then lets the subscriptions see them. The other way round, a kill in
// between would leave a subscriber with a message that the broker never had.
func (b *broker) accept(ctx context.Context, topicName string, messages []*pb.PubsubMessage) ([]string, int64, error) {
	if b.topics[topicName] == nil {
		return nil, 0, status.Errorf(codes.NotFound, "topic %q does not exist: create it first", topicName)
	}
	now := time.Now().UTC()
	ids := make([]string, len(messages))
	records := make([]*Message, len(messages))
	for i, m := range messages {
		seq := b.journal.nextSeq()
		// The sequence outlives restarts, so the ids made of it do not repeat.
		ids[i] = strconv.FormatInt(seq, 10)
		records[i] = &Message{
			Seq: seq, ID: ids[i], Topic: topicName, PublishTime: now,
			OrderingKey: m.GetOrderingKey(), Attributes: m.GetAttributes(), Data: m.GetData(),
		}
	}
	end, err := b.journal.appendMessages(records)
	if err != nil {
		return nil, 0, status.Errorf(codes.Internal, "the messages were not journalled: %v", err)
	}
	b.accepted += int64(len(records))
	_, err = b.release(ctx, topicName, records)
	return ids, end, err
}

// release gives journalled messages to the topic's subscriptions and returns pstest's ids for them.
// Without a subscription nobody can ever receive them, and pstest would only hold them in memory.
func (b *broker) release(ctx context.Context, topicName string, records []*Message) ([]string, error) {
	if len(b.topics[topicName].subs) == 0 {
		return nil, nil
	}
	req := &pb.PublishRequest{Topic: topicName}
	for _, r := range records {
		req.Messages = append(req.Messages, &pb.PubsubMessage{
			Data: r.Data, Attributes: r.Attributes, OrderingKey: r.OrderingKey,
		})
	}
	res, err := b.inner.GServer.Publish(ctx, req)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "pstest refused a journalled message: %v", err)
	}
	for i, id := range res.GetMessageIds() {
		b.origins[id] = origin{id: records[i].ID, publishTime: records[i].PublishTime}
	}
	for _, sub := range b.topics[topicName].subs {
		sub.wake()
	}
	return res.GetMessageIds(), nil
}
