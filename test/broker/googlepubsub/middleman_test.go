package googlepubsub_test

import (
	"context"
	"strings"
	"sync"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/relay"
)

// middleman stands between client and broker. It answers requests that hold one certain message as the
// service answers a message that the topic's schema refuses: nothing of the request is accepted. And it
// loses answers.
type middleman struct {
	mu     sync.Mutex
	id     string
	answer error // in place of INVALID_ARGUMENT
	most   int
	shared bool          // refuses requests of several messages
	lost   chan struct{} // closed when answers are no longer lost; nil when they are not
}

func (m *middleman) dialOption() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(m.intercept)
}

// refuse says which message is bad; nil for none.
func (m *middleman) refuse(message *relay.Message) {
	id := ""
	if message != nil {
		id = message.ID.String()
	}
	m.refuseID(id)
}

func (m *middleman) refuseID(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id = id
}

// refuseShared refuses requests of several messages, or no longer, and forgets which was the largest.
func (m *middleman) refuseShared(refuse bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shared, m.most = refuse, 0
}

// largest is how many messages the largest request had.
func (m *middleman) largest() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

func (m *middleman) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if publish, ok := req.(*pb.PublishRequest); ok && strings.HasSuffix(method, "/Publish") {
		if err := m.judge(publish); err != nil {
			return err
		}
	}
	err := invoke(ctx, method, req, reply, conn, opts...)
	m.mu.Lock()
	lost := m.lost
	m.mu.Unlock()
	if lost == nil {
		return err
	}
	select {
	case <-lost:
	case <-ctx.Done():
	}
	return status.Error(codes.DeadlineExceeded, "the answer is lost")
}

// loseAnswers lets requests through and keeps their answers, until end is called.
func (m *middleman) loseAnswers() (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lost := make(chan struct{})
	m.lost = lost
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lost = nil
		close(lost)
	}
}

func (m *middleman) judge(publish *pb.PublishRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = max(m.most, len(publish.GetMessages()))
	if m.shared && len(publish.GetMessages()) > 1 {
		return status.Error(codes.InvalidArgument, "a message of the request is bad, and then is not")
	}
	for _, message := range publish.GetMessages() {
		if m.id != "" && message.GetAttributes()["event_id"] == m.id {
			if m.answer != nil {
				return m.answer
			}
			return status.Error(codes.InvalidArgument, "a message of the request is not what the schema says")
		}
	}
	return nil
}
