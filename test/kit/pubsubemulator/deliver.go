package pubsubemulator

import (
	"container/heap"
	"fmt"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// advance does what time does: leases end, and delays are over.
func (b *broker) advance(sub *subscription, now time.Time) {
	for len(sub.leases) > 0 && !sub.leases[0].deadline.After(now) {
		ended := heap.Pop(&sub.leases).(lease)
		if ended.item.state == out && ended.item.deadline.Equal(ended.deadline) {
			sub.fail(ended.item, now, b.longestBackoff)
		}
	}
	for l := sub.later.peek(); l != nil && l.head <= now.UnixNano(); l = sub.later.peek() {
		sub.schedule(l, now)
	}
}

// pull gives holder up to limit messages until the deadline, the oldest first.
func (b *broker) pull(sub *subscription, limit int, deadline time.Duration, to *holder) ([]*pb.ReceivedMessage, error) {
	name := sub.proto.GetName()
	if b.subs[name] != sub { // deleted, and perhaps created anew, since the caller looked it up
		return nil, status.Errorf(codes.NotFound, "subscription %q was deleted", name)
	}
	if sub.proto.GetDetached() {
		return nil, status.Errorf(codes.FailedPrecondition, "subscription %q is detached from its topic", name)
	}
	now := time.Now()
	b.advance(sub, now)
	var received []*pb.ReceivedMessage
	for len(received) < limit && !to.full() {
		l := sub.nextFor(to)
		if l == nil {
			break
		}
		it := l.first()
		done, err := b.deadLetter(sub, it, now)
		if err != nil {
			return nil, err
		}
		if done {
			continue
		}
		sub.deliver(l, to, now.Add(deadline), now)
		received = append(received, sub.received(it))
	}
	return received, nil
}

// nextFor returns the line whose message is the oldest that holder may have, or nil.
func (s *subscription) nextFor(to *holder) *line {
	free, own := s.free.peek(), to.ready.peek()
	if own != nil && (free == nil || own.head < free.head) {
		return own
	}
	return free
}

// received is what the subscriber gets.
func (s *subscription) received(it *item) *pb.ReceivedMessage {
	it.ackID = fmt.Sprintf("%s:%d", it.record.ID, it.sent)
	r := &pb.ReceivedMessage{AckId: it.ackID, Message: &pb.PubsubMessage{
		Data: it.record.Data, Attributes: it.record.Attributes, OrderingKey: it.record.OrderingKey,
		MessageId: it.record.ID, PublishTime: timestamppb.New(it.record.PublishTime),
	}}
	if s.proto.GetDeadLetterPolicy() != nil {
		r.DeliveryAttempt = it.failures + 1
	}
	return r
}

// giveBack takes messages back that never left: it is no failure of theirs.
func (b *broker) giveBack(sub *subscription, unsent []*pb.ReceivedMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, r := range unsent {
		if it := sub.find(r.GetAckId()); it != nil && it.state == out {
			sub.rewind(it, now)
			it.ackID = ""
		}
	}
	sub.wake()
}

// leave ends a holder. What it has stays its own until it is acknowledged, given back, or the deadline has passed:
// others get the later messages of those lines then.
func (b *broker) leave(sub *subscription, h *holder) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.closed = true
	sub.wake()
}
