package pubsubemulator

import (
	"context"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// broker implements the Pub/Sub services: pstest knows topics and subscriptions, and what is valid there; the broker
// journals and delivers. pstest's own delivery is another one than Google's: it has one message of an ordering key
// out at a time, redelivers nothing behind it, and knows no retry policies.
//
// One mutex guards everything, pstest's answers included: pstest hands out pointers to its own state,
// which are only safe to read while nobody changes it. pstest has one mutex for everything too, so
// nothing is lost by it. No fault and no fsync ever waits under it.
type broker struct {
	pb.UnimplementedPublisherServer
	pb.UnimplementedSubscriberServer

	done           chan struct{} // closed when the emulator stops
	longestBackoff time.Duration // 0 is no limit

	mu       sync.Mutex
	inner    *pstest.Server
	filters  filters
	journal  *journal
	topics   map[string]*topic
	subs     map[string]*subscription
	accepted int64
	replayed int64
}

// topic knows which subscriptions get what is published to it.
type topic struct {
	subs map[string]*subscription
}

func newBroker(j *journal, longestBackoff time.Duration) (*broker, error) {
	inner, err := newInner()
	if err != nil {
		return nil, err
	}
	return &broker{
		done:           make(chan struct{}),
		longestBackoff: longestBackoff,
		inner:          inner,
		journal:        j,
		topics:         map[string]*topic{},
		subs:           map[string]*subscription{},
	}, nil
}

// stop ends the streams, so that the gRPC server can stop gracefully.
func (b *broker) stop() { close(b.done) }

// close releases what the broker holds. No call may be under way.
func (b *broker) close() error {
	_ = b.inner.Close()
	b.inner.Wait()
	b.filters.close()
	return b.journal.close()
}

// findSub returns the subscription of that name, or the error that the service gives.
func (b *broker) findSub(name string) (*subscription, error) {
	if sub := b.subs[name]; sub != nil {
		return sub, nil
	}
	return nil, status.Errorf(codes.NotFound, "subscription %q does not exist: create it first", name)
}

// read answers a call that changes nothing.
func read[Req, Res proto.Message](ctx context.Context, b *broker, req Req,
	call func(context.Context, Req) (Res, error),
) (Res, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	res, err := call(ctx, req)
	if err != nil {
		var none Res
		return none, err
	}
	return cloneOf(res), nil
}

// cloneOf copies a message out of reach of pstest, which goes on changing the one that it returned.
func cloneOf[M proto.Message](m M) M {
	return proto.Clone(m).(M)
}
