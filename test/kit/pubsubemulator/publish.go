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
func (b *broker) Publish(_ context.Context, req *pb.PublishRequest) (*pb.PublishResponse, error) {
	if err := checkPublish(req); err != nil {
		return nil, err
	}
	b.mu.Lock()
	ids, end, err := b.accept(req.GetTopic(), req.GetMessages())
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
func (b *broker) accept(topicName string, messages []*pb.PubsubMessage) ([]string, int64, error) {
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
	for _, record := range records {
		if err := b.release(record, nil); err != nil {
			return nil, 0, err
		}
	}
	return ids, end, nil
}

// release lets a topic's subscriptions see a journalled message, but for those that are done with it.
func (b *broker) release(record *Message, done map[string]struct{}) error {
	now := time.Now()
	for name, sub := range b.topics[record.Topic].subs {
		if _, ok := done[name]; ok {
			continue
		}
		passes, err := b.filters.passes(sub.proto.GetFilter(), record.Attributes)
		if err != nil {
			return status.Errorf(codes.Internal, "the filter of %s: %v", name, err)
		}
		if passes {
			sub.add(record, now)
			sub.wake()
		}
	}
	return nil
}
