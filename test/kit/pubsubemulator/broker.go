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

// broker implements the Pub/Sub services: pstest decides, the broker journals and translates.
//
// One mutex guards everything, pstest's answers included: pstest hands out pointers to its own state,
// which are only safe to read while nobody changes it. pstest has one mutex for everything too, so
// nothing is lost by it. No fault and no fsync ever waits under it.
type broker struct {
	pb.UnimplementedPublisherServer
	pb.UnimplementedSubscriberServer

	done chan struct{} // closed when the emulator stops

	mu      sync.Mutex
	inner   *pstest.Server
	journal *journal
	topics  map[string]*topic
	subs    map[string]*subscription
	// origins leads from pstest's message ids to ours. Entries stay, as the messages do in pstest.
	origins  map[string]origin
	accepted int64
	replayed int64
}

// topic knows which subscriptions get what is published to it.
type topic struct {
	subs  map[string]*subscription
	queue []queued // accepted, and not in pstest yet
}

// subscription is the broker's side of a subscription.
type subscription struct {
	// proto is pstest's own record, so that changes of the configuration need no copying.
	proto *pb.Subscription
	topic *topic
	// inside is how many messages pstest has for it, that are not acknowledged.
	inside int
	// deliveries are the messages that were delivered and not acknowledged, by our message id.
	deliveries map[string]*delivery
	// waiters are told when there may be something to pull.
	waiters map[chan struct{}]struct{}
}

// origin is what the message with some id of pstest's was when it was accepted. pstest counts its ids
// from zero at every start; ours must stay the same across restarts.
type origin struct {
	id          string
	publishTime time.Time
}

func newBroker(j *journal) (*broker, error) {
	inner, err := newInner()
	if err != nil {
		return nil, err
	}
	return &broker{
		done:    make(chan struct{}),
		inner:   inner,
		journal: j,
		topics:  map[string]*topic{},
		subs:    map[string]*subscription{},
		origins: map[string]origin{},
	}, nil
}

// stop ends the streams, so that the gRPC server can stop gracefully.
func (b *broker) stop() { close(b.done) }

// close releases what the broker holds. No call may be under way.
func (b *broker) close() error {
	_ = b.inner.Close()
	b.inner.Wait()
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
