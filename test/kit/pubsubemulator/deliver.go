package pubsubemulator

import (
	"context"
	"fmt"
	"strings"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// defaultAckDeadline is the service's deadline for a subscription that sets none.
const defaultAckDeadline = 10 * time.Second

// delivery is what became of a message on one subscription. It stays until the acknowledgement, since
// the attempts count for dead lettering.
type delivery struct {
	attempts int32
	// ackID is what the latest delivery may be acknowledged with. Empty after a nack: an id from
	// before it must not acknowledge the delivery that follows.
	ackID string
	// innerAckID is pstest's.
	innerAckID string
	// owner is the stream that has the message until the deadline; nil for a unary pull.
	owner    *stream
	deadline time.Time
}

// wake tells the waiters of the subscription to look again.
func (s *subscription) wake() {
	for waiter := range s.waiters {
		select {
		case waiter <- struct{}{}:
		default: // it has been told already
		}
	}
}

// wait registers a waiter; the function ends it.
func (b *broker) wait(sub *subscription) (<-chan struct{}, func()) {
	waiter := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	sub.waiters[waiter] = struct{}{}
	return waiter, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(sub.waiters, waiter)
	}
}

// ackDeadline is the subscription's own deadline.
func (s *subscription) ackDeadline() time.Duration {
	if seconds := s.proto.GetAckDeadlineSeconds(); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultAckDeadline
}

// pull takes up to limit messages off the subscription for owner, until the deadline. It uses
// pstest's pull for streams too: pstest's own streams hand over about one message every ten
// milliseconds, and a keep-alive at the wrong moment blocks them for good.
func (b *broker) pull(ctx context.Context, sub *subscription, limit int, deadline time.Duration, owner *stream,
) ([]*pb.ReceivedMessage, error) {
	name := sub.proto.GetName()
	if b.subs[name] != sub { // deleted, and perhaps created anew, since the caller looked it up
		return nil, status.Errorf(codes.NotFound, "subscription %q was deleted", name)
	}
	//nolint:staticcheck // Deprecated for users of the service; here it keeps pstest from sleeping under the mutex.
	res, err := b.inner.GServer.Pull(ctx, &pb.PullRequest{
		Subscription: name, MaxMessages: int32(limit), ReturnImmediately: true,
	})
	if err != nil {
		return nil, err
	}
	if err := b.innerDeadline(ctx, name, deadline, res.GetReceivedMessages()...); err != nil {
		return nil, err
	}
	var out []*pb.ReceivedMessage
	for _, received := range res.GetReceivedMessages() {
		m, err := b.deliver(ctx, sub, received, owner, time.Now().Add(deadline))
		if err != nil {
			return nil, err
		}
		if m != nil {
			out = append(out, m)
		}
	}
	return out, nil
}

// innerDeadline sets the deadline of messages that were just pulled: pstest uses the one that the
// subscription was created with, whatever it was updated to and whatever a stream asks for.
func (b *broker) innerDeadline(ctx context.Context, name string, deadline time.Duration,
	received ...*pb.ReceivedMessage,
) error {
	req := &pb.ModifyAckDeadlineRequest{Subscription: name, AckDeadlineSeconds: int32(deadline / time.Second)}
	for _, r := range received {
		req.AckIds = append(req.AckIds, r.GetAckId())
	}
	_, err := b.inner.GServer.ModifyAckDeadline(ctx, req)
	return err
}

// deliver makes of pstest's message the one for the subscriber, or nil when the message went to the
// dead letter topic instead.
func (b *broker) deliver(ctx context.Context, sub *subscription, received *pb.ReceivedMessage, owner *stream,
	until time.Time,
) (*pb.ReceivedMessage, error) {
	m := received.GetMessage()
	from := b.origins[m.GetMessageId()]
	d := sub.deliveries[from.id]
	if d == nil {
		d = &delivery{}
		sub.deliveries[from.id] = d
	}
	target := sub.deadLetterTopic(d.attempts)
	if target == "" {
		d.attempts++
	}
	d.ackID = fmt.Sprintf("%s:%d", from.id, d.attempts)
	d.innerAckID, d.owner, d.deadline = received.GetAckId(), owner, until
	if target != "" {
		return nil, b.deadLetter(ctx, sub, target, m, d)
	}
	out := &pb.ReceivedMessage{AckId: d.ackID, Message: &pb.PubsubMessage{
		Data: m.GetData(), Attributes: m.GetAttributes(), OrderingKey: m.GetOrderingKey(),
		MessageId: from.id, PublishTime: timestamppb.New(from.publishTime),
	}}
	if sub.proto.GetDeadLetterPolicy() != nil {
		out.DeliveryAttempt = d.attempts
	}
	return out, nil
}

// find returns the delivery that ackID stands for, or nil when it is not the latest: too late, acked
// already, or given out before a restart. Such an id is ignored, as the service ignores it.
func (s *subscription) find(ackID string) (id string, d *delivery) {
	id, _, _ = strings.Cut(ackID, ":")
	if d = s.deliveries[id]; d == nil || d.ackID != ackID {
		return id, nil
	}
	return id, d
}

// settle acknowledges deliveries, in the journal first: an acknowledgement that was confirmed must
// not come back.
func (b *broker) settle(ctx context.Context, sub *subscription, ackIDs []string) error {
	name := sub.proto.GetName()
	var ids, inner []string
	for _, ackID := range ackIDs {
		if id, d := sub.find(ackID); d != nil {
			ids, inner = append(ids, id), append(inner, d.innerAckID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := b.journal.appendAck(name, ids); err != nil {
		return status.Errorf(codes.Internal, "the acknowledgement was not journalled: %v", err)
	}
	if _, err := b.inner.GServer.Acknowledge(ctx, &pb.AcknowledgeRequest{Subscription: name, AckIds: inner}); err != nil {
		return err
	}
	for _, id := range ids {
		delete(sub.deliveries, id)
	}
	sub.inside -= len(ids)
	sub.wake() // a stream has room again, an ordering key is free
	return b.fill(ctx, sub.proto.GetTopic(), mostInside)
}

// extend moves the deadline of deliveries; zero seconds gives them back, which is a nack.
func (b *broker) extend(ctx context.Context, sub *subscription, ackIDs []string, seconds int32) error {
	req := &pb.ModifyAckDeadlineRequest{Subscription: sub.proto.GetName(), AckDeadlineSeconds: seconds}
	for _, ackID := range ackIDs {
		_, d := sub.find(ackID)
		if d == nil {
			continue
		}
		req.AckIds = append(req.AckIds, d.innerAckID)
		d.deadline = time.Now().Add(time.Duration(seconds) * time.Second)
		if seconds == 0 {
			d.ackID = ""
		}
	}
	if len(req.GetAckIds()) == 0 {
		return nil
	}
	_, err := b.inner.GServer.ModifyAckDeadline(ctx, req)
	if seconds == 0 {
		sub.wake()
	}
	return err
}
