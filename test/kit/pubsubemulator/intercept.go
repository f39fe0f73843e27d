package pubsubemulator

import (
	"context"
	"path"
	"slices"
	"time"

	"cloud.google.com/go/iam/apiv1/iampb"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// faultInjector puts the faults between the network and the broker. It waits outside of every lock,
// so that a call that is held up holds up nobody else.
type faultInjector struct {
	table *faultTable
	conns *connTable
	late  *lateCalls
	token string // what callers must show; empty is nothing
	done  <-chan struct{}
}

// unary meets a call with its faults.
func (i *faultInjector) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler,
) (any, error) {
	v := i.decide(ctx, info.FullMethod, req)
	if err := i.before(ctx, v); err != nil {
		return nil, err
	}
	if v.fault != nil && v.fault.Kind == KindNoPermission {
		return &iampb.TestIamPermissionsResponse{}, nil
	}
	if v.fault != nil && v.fault.Kind == KindLate {
		return i.late.handle(ctx, time.Duration(v.fault.Milliseconds)*time.Millisecond, i.done,
			func(ctx context.Context) (any, error) { return handle(ctx, req) })
	}
	res, err := handle(ctx, req)
	if err != nil || v.fault == nil {
		return res, err
	}
	return nil, i.loseAnswer(ctx, v.fault)
}

// stream meets a stream with its faults: while it opens, or when it has delivered enough.
func (i *faultInjector) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler,
) error {
	v := i.decide(ss.Context(), info.FullMethod, nil)
	if err := i.before(ss.Context(), v); err != nil {
		return err
	}
	if v.fault != nil {
		ss = &breakingStream{ServerStream: ss, left: v.fault.AfterMessages, err: v.fault.status()}
	}
	return handle(srv, ss)
}

func (i *faultInjector) decide(ctx context.Context, fullMethod string, req any) verdict {
	c := call{method: path.Base(fullMethod)}
	switch req := req.(type) {
	case *pb.PublishRequest:
		c.topic, c.messages = req.GetTopic(), req.GetMessages()
	case *iampb.TestIamPermissionsRequest:
		c.topic = req.GetResource()
	}
	if client, ok := peer.FromContext(ctx); ok {
		c.connection = i.conns.number(client.Addr)
	}
	return i.table.decide(c)
}

// before applies what happens ahead of the call.
func (i *faultInjector) before(ctx context.Context, v verdict) error {
	if v.delay > 0 {
		timer := time.NewTimer(v.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-i.done:
			return errStopping
		}
	}
	if !i.mayCall(ctx) {
		return status.Error(codes.Unauthenticated, "the call has no valid access token")
	}
	if v.fault == nil {
		return nil
	}
	switch {
	case v.fault.Kind == KindError && v.fault.AfterMessages == 0:
		return v.fault.status()
	case v.fault.Kind == KindBlackHole:
		if client, ok := peer.FromContext(ctx); ok {
			i.conns.silence(client.Addr)
		}
		return i.hang(ctx)
	}
	return nil
}

// mayCall tells whether the caller has shown the token.
func (i *faultInjector) mayCall(ctx context.Context) bool {
	if i.token == "" {
		return true
	}
	shown := metadata.ValueFromIncomingContext(ctx, "authorization")
	return slices.Contains(shown, "Bearer "+i.token)
}

// loseAnswer keeps the caller from learning that the call was handled.
func (i *faultInjector) loseAnswer(ctx context.Context, f *Fault) error {
	if f.Mode == ModeHang {
		return i.hang(ctx)
	}
	if client, ok := peer.FromContext(ctx); ok {
		i.conns.reset(client.Addr)
	}
	// Nobody hears this when the connection was cut.
	return status.Error(codes.Unavailable, "injected fault: the answer is lost")
}

// hang keeps the caller waiting for as long as it does.
func (i *faultInjector) hang(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-i.done:
		return errStopping
	}
}

// breakingStream is a StreamingPull that ends with an error behind some messages.
type breakingStream struct {
	grpc.ServerStream
	left int
	err  error
}

// SendMsg sends, and is what breaks: the broker ends a stream to which it cannot send.
func (s *breakingStream) SendMsg(m any) error {
	if err := s.ServerStream.SendMsg(m); err != nil {
		return err
	}
	if res, ok := m.(*pb.StreamingPullResponse); ok {
		s.left -= len(res.GetReceivedMessages())
	}
	if s.left <= 0 {
		return s.err
	}
	return nil
}
