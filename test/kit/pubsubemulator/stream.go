package pubsubemulator

import (
	"errors"
	"io"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// streamBatch bounds what a stream takes at once, so that streams share a backlog.
	streamBatch = 100
	// expiryTick is how soon a stream notices that a deadline has passed; everything else wakes it.
	expiryTick = 100 * time.Millisecond
)

// errStopping makes clients come back, by which time the emulator may run again.
var errStopping = status.Error(codes.Unavailable, "the emulator is stopping")

// stream is one StreamingPull call.
type stream struct {
	broker *broker
	grpc   pb.Subscriber_StreamingPullServer
	sub    *subscription
	// answersPings says whether the client expects an answer to its keep-alives.
	answersPings bool
	pings        chan struct{}

	// The broker's mutex guards these.
	deadline time.Duration
	holder   holder
}

// StreamingPull delivers messages until the subscriber or the emulator ends the stream.
func (b *broker) StreamingPull(grpc pb.Subscriber_StreamingPullServer) error {
	first, err := grpc.Recv()
	if err != nil {
		return err
	}
	b.mu.Lock()
	sub, err := b.findSub(first.GetSubscription())
	b.mu.Unlock()
	if err != nil {
		return err
	}
	st := &stream{
		broker:       b,
		grpc:         grpc,
		sub:          sub,
		answersPings: first.GetProtocolVersion() >= 1,
		pings:        make(chan struct{}, 1),
		holder: holder{
			maxOutstanding: int(first.GetMaxOutstandingMessages()),
			maxBytes:       int(first.GetMaxOutstandingBytes()),
		},
	}
	if err := st.handle(first); err != nil {
		return err
	}
	defer b.leave(sub, &st.holder)
	received := make(chan error, 1)
	go func() { received <- st.receive() }()
	return st.send(received)
}

// receive handles what the subscriber sends until the stream ends.
func (st *stream) receive() error {
	for {
		req, err := st.grpc.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(req.GetAckIds()) == 0 && len(req.GetModifyDeadlineAckIds()) == 0 && st.answersPings {
			select {
			case st.pings <- struct{}{}:
			default: // one answer serves both
			}
		}
		if err := st.handle(req); err != nil {
			return err
		}
	}
}

// handle applies one request of the subscriber's.
func (st *stream) handle(req *pb.StreamingPullRequest) error {
	if len(req.GetModifyDeadlineAckIds()) != len(req.GetModifyDeadlineSeconds()) {
		return status.Error(codes.InvalidArgument, "modify_deadline_ack_ids and modify_deadline_seconds differ in length")
	}
	b := st.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if seconds := req.GetStreamAckDeadlineSeconds(); seconds > 0 {
		st.deadline = time.Duration(seconds) * time.Second
	}
	if err := b.settle(st.sub, req.GetAckIds()); err != nil {
		return err
	}
	for i, ackID := range req.GetModifyDeadlineAckIds() {
		if err := b.extend(st.sub, []string{ackID}, req.GetModifyDeadlineSeconds()[i]); err != nil {
			return err
		}
	}
	return nil
}

// send delivers until the stream ends, and is the only one to write to it.
func (st *stream) send(received <-chan error) error {
	woken, forget := st.broker.wait(st.sub)
	defer forget()
	tick := time.NewTicker(expiryTick)
	defer tick.Stop()
	ctx := st.grpc.Context()
	for {
		more, err := st.sendBatch()
		if err != nil {
			return err
		}
		again := make(chan struct{})
		if more {
			close(again)
		}
		select {
		case <-again:
		case <-woken:
		case <-tick.C:
		case <-st.pings:
			if err := st.grpc.Send(&pb.StreamingPullResponse{}); err != nil {
				return err
			}
		case err := <-received:
			return err
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-st.broker.done:
			return errStopping
		}
	}
}

// sendBatch delivers what there is room for and tells whether there may be more. Every message is a
// response of its own, so that large ones cannot add up to more than the client takes.
func (st *stream) sendBatch() (more bool, err error) {
	received, properties, err := st.take()
	if err != nil {
		return false, err
	}
	for i, m := range received {
		err := st.grpc.Send(&pb.StreamingPullResponse{
			ReceivedMessages:       []*pb.ReceivedMessage{m},
			SubscriptionProperties: properties,
		})
		if err != nil {
			st.broker.giveBack(st.sub, received[i+1:])
			return false, err
		}
	}
	return len(received) > 0, nil
}

func (st *stream) take() ([]*pb.ReceivedMessage, *pb.StreamingPullResponse_SubscriptionProperties, error) {
	b := st.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	deadline := st.deadline
	if deadline == 0 {
		deadline = st.sub.ackDeadline()
	}
	received, err := b.pull(st.sub, streamBatch, deadline, &st.holder)
	return received, &pb.StreamingPullResponse_SubscriptionProperties{
		ExactlyOnceDeliveryEnabled: st.sub.proto.GetEnableExactlyOnceDelivery(),
		MessageOrderingEnabled:     st.sub.proto.GetEnableMessageOrdering(),
	}, err
}
