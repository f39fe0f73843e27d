package pubsubemulator

import (
	"context"
	"path"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// faultInjector puts the faults between the network and the broker. It waits outside of every lock,
// so that a call that is held up holds up nobody else.
type faultInjector struct {
	table *faultTable
	conns *connTable
	done  <-chan struct{}
}

// unary meets a call with its faults.
func (i *faultInjector) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler,
) (any, error) {
	var topic string
	if publish, ok := req.(*pb.PublishRequest); ok {
		topic = publish.GetTopic()
	}
	v := i.table.decide(path.Base(info.FullMethod), topic)
	if err := i.before(ctx, v); err != nil {
		return nil, err
	}
	res, err := handle(ctx, req)
	if err != nil || v.fault == nil {
		return res, err
	}
	return nil, i.loseAnswer(ctx, v.fault)
}

// stream meets a stream with its faults while it opens.
func (i *faultInjector) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler,
) error {
	if err := i.before(ss.Context(), i.table.decide(path.Base(info.FullMethod), "")); err != nil {
		return err
	}
	return handle(srv, ss)
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
	if v.fault == nil || v.fault.Kind != KindError {
		return nil
	}
	code, err := v.fault.grpcCode()
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return status.Errorf(code, "injected fault: %s of %s", v.fault.Code, v.fault.Method)
}

// loseAnswer keeps the caller from learning that the call was handled.
func (i *faultInjector) loseAnswer(ctx context.Context, f *Fault) error {
	if f.Mode == ModeHang {
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-i.done:
			return errStopping
		}
	}
	if client, ok := peer.FromContext(ctx); ok {
		i.conns.reset(client.Addr)
	}
	// Nobody hears this when the connection was cut.
	return status.Error(codes.Unavailable, "injected fault: the answer is lost")
}
