package googlepubsub_test

import (
	"context"
	"strings"
	"sync"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// middleman stands between client and broker. It answers requests that hold one certain message as the
// service answers a message that the topic's schema refuses: nothing of the request is accepted. And it
// holds requests up and loses answers.
type middleman struct {
	mu       sync.Mutex
	id       string
	answer   error // in place of INVALID_ARGUMENT
	most     int
	shared   bool          // refuses requests of several messages
	patient  bool          // requests get through, also where the client's own timeout passes on the way
	lost     chan struct{} // closed when answers are no longer lost; nil when they are not
	held     chan struct{} // closed when requests are no longer held up; nil when they are not
	stubborn bool          // who is held up does not heed its context
	loses    bool          // what is held up is lost in the end
	only     string        // of which keys requests are held up, by how they begin; empty for all
	waiting  int           // requests that are held up
	begun    int           // requests that came
	passing  int           // requests that are on their way to the broker and back
}

func (m *middleman) dialOption() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(m.intercept)
}

// refuse says which message is bad; nil for none.
func (m *middleman) reject(message *publish.Message) {
	id := ""
	if message != nil {
		id = message.ID.String()
	}
	m.rejectID(id)
}

func (m *middleman) rejectID(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id = id
}

// rejectShared refuses requests of several messages, or no longer, and forgets which was the largest.
func (m *middleman) rejectShared(reject bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shared, m.most = reject, 0
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
		if err := m.decide(publish); err != nil {
			return err
		}
	}
	if err := m.wait(ctx, keyOf(req)); err != nil {
		return err
	}
	lost, err := m.pass(ctx, func(ctx context.Context) error { return invoke(ctx, method, req, reply, conn, opts...) })
	if lost == nil {
		return err
	}
	select {
	case <-lost:
	case <-ctx.Done():
	}
	return status.Error(codes.DeadlineExceeded, "the answer is lost")
}

// pass lets a request through, and tells whether its answer is lost.
func (m *middleman) pass(ctx context.Context, invoke func(context.Context) error) (lost chan struct{}, err error) {
	m.mu.Lock()
	m.passing++
	if m.patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), eventually.Patience)
		defer cancel()
	}
	m.mu.Unlock()
	err = invoke(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passing--
	return m.lost, err
}

// keyOf is the key of a request's messages.
func keyOf(req any) string {
	publish, ok := req.(*pb.PublishRequest)
	if !ok || len(publish.GetMessages()) == 0 {
		return ""
	}
	return publish.GetMessages()[0].GetOrderingKey()
}

// quiet tells that no request is on its way to the broker.
func (m *middleman) quiet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.passing == 0
}

// wait waits for as long as requests are held up.
func (m *middleman) wait(ctx context.Context, key string) error {
	m.mu.Lock()
	m.begun++
	held := m.held
	if held == nil || !strings.HasPrefix(key, m.only) {
		m.mu.Unlock()
		return nil
	}
	m.waiting++
	loses := m.loses
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waiting--
	}()
	if m.stubborn {
		<-held
		return nil
	}
	select {
	case <-held:
		if loses {
			return status.Error(codes.Unavailable, "the request is lost")
		}
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// hang holds requests up until end is called, and loses them then.
func (m *middleman) hang() (end func()) {
	end = m.hold()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loses = true
	return end
}

// hold holds requests up before the broker, until end is called.
func (m *middleman) hold() (end func()) { return m.holdOnly("") }

// holdOnly holds up those whose key begins in a certain way.
func (m *middleman) holdOnly(prefix string) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := make(chan struct{})
	m.held, m.only = held, prefix
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.held == held { // else those that come later are held up by somebody else
			m.held, m.loses = nil, false
		}
		close(held)
	})
}

// heldUp is how many requests are held up now.
func (m *middleman) heldUp() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}

// came is how many requests came.
func (m *middleman) came() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun
}

// loseAnswers lets requests through and keeps their answers, until end is called.
func (m *middleman) loseAnswers() (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lost := make(chan struct{})
	m.lost = lost
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lost = nil
		close(lost)
	})
}

func (m *middleman) decide(publish *pb.PublishRequest) error {
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
