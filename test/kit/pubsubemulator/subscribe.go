package pubsubemulator

import (
	"context"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// maxPull is how many messages one pull takes at most; the service has the same limit.
	maxPull = 1000
	// pullPatience is how long a unary pull waits for a first message before it answers with none.
	pullPatience = time.Second
)

// Acknowledge takes messages off a subscription.
func (b *broker) Acknowledge(_ context.Context, req *pb.AcknowledgeRequest) (*emptypb.Empty, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sub, err := b.findSub(req.GetSubscription())
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, b.settle(sub, req.GetAckIds())
}

// ModifyAckDeadline gives a subscriber more time for messages, or gives them back.
func (b *broker) ModifyAckDeadline(_ context.Context, req *pb.ModifyAckDeadlineRequest) (*emptypb.Empty, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sub, err := b.findSub(req.GetSubscription())
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, b.extend(sub, req.GetAckIds(), req.GetAckDeadlineSeconds())
}

// Pull returns messages, and waits a moment for the first.
func (b *broker) Pull(ctx context.Context, req *pb.PullRequest) (*pb.PullResponse, error) {
	if req.GetMaxMessages() < 1 {
		return nil, status.Errorf(codes.InvalidArgument, "max_messages is %d: ask for at least one", req.GetMaxMessages())
	}
	b.mu.Lock()
	sub, err := b.findSub(req.GetSubscription())
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	woken, forget := b.wait(sub)
	defer forget()
	patience := time.NewTimer(pullPatience)
	defer patience.Stop()
	for {
		received, err := b.pullUnary(sub, int(req.GetMaxMessages()))
		//nolint:staticcheck // Deprecated, but clients may still send it.
		if err != nil || len(received) > 0 || req.GetReturnImmediately() {
			return &pb.PullResponse{ReceivedMessages: received}, err
		}
		select {
		case <-woken:
		case <-patience.C:
			return &pb.PullResponse{}, nil
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-b.done:
			return nil, errStopping
		}
	}
}

// pullUnary gives what there is to a holder of its own. Of an ordering key it gets messages only when none are out,
// as from Google's emulator: one batch at a time.
func (b *broker) pullUnary(sub *subscription, limit int) ([]*pb.ReceivedMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to := &holder{}
	received, err := b.pull(sub, min(limit, maxPull), sub.ackDeadline(), to)
	to.closed = true
	return received, err
}
