package googlepubsub_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

const (
	project = "p"
	orders  = "orders"
)

func TestMain(m *testing.M) {
	os.Exit(goroutines.Run(m, goroutines.Linked, goroutines.Received))
}

// env is an emulator with the topic orders, a client and a publisher.
type env struct {
	dir       string
	server    *pubsubemulator.Server
	client    *pubsub.Client
	publisher *googlepubsub.Publisher
}

func newEnv(t *testing.T, config googlepubsub.PublisherConfig, dial ...grpc.DialOption) *env {
	t.Helper()
	w := &env{dir: t.TempDir()}
	w.server = startEmulator(t, w.dir, "")
	t.Cleanup(func() { _ = w.server.Close() })
	w.client = newClient(t, w.server.Addr(), dial...)
	w.createTopic(t, orders)
	w.publisher = newPublisher(t, w.client, config)
	return w
}

func startEmulator(t *testing.T, dir, addr string) *pubsubemulator.Server {
	t.Helper()
	server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: dir, Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func newClient(t *testing.T, addr string, dial ...grpc.DialOption) *pubsub.Client {
	t.Helper()
	options := []option.ClientOption{
		option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
	for _, d := range dial {
		options = append(options, option.WithGRPCDialOption(d))
	}
	client, err := pubsub.NewClient(t.Context(), project, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// newPublisher has time for its requests, also on a busy machine, unless the test is about that.
func newPublisher(t *testing.T, client *pubsub.Client, config googlepubsub.PublisherConfig) *googlepubsub.Publisher {
	t.Helper()
	if config.Timeout == 0 {
		config.Timeout = eventually.Patience
	}
	publisher, err := googlepubsub.NewPublisher(client, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := publisher.Close(); err != nil {
			t.Error(err)
		}
	})
	return publisher
}

func topicName(id string) string { return "projects/" + project + "/topics/" + id }

func (w *env) createTopic(t *testing.T, id string) {
	t.Helper()
	if _, err := w.client.TopicAdminClient.CreateTopic(testContext(t), &pb.Topic{Name: topicName(id)}); err != nil {
		t.Fatal(err)
	}
}

func (w *env) inject(t *testing.T, f pubsubemulator.Fault) {
	t.Helper()
	if err := w.server.Inject(f); err != nil {
		t.Fatal(err)
	}
}

// journal is what the broker accepted, in order.
func (w *env) journal(t *testing.T) []pubsubemulator.Message {
	t.Helper()
	messages, err := pubsubemulator.ReadMessages(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// fired counts the calls that met a fault.
func (w *env) fired() int {
	fired := 0
	for _, n := range w.server.Stats().Faulted {
		fired += n
	}
	return fired
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	return within(t, eventually.Patience)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// late is a context whose deadline passes when the test says so.
type late struct {
	context.Context //nolint:containedctx // it is one
	passed          chan struct{}
}

func newLate(t *testing.T) late {
	t.Helper()
	return late{Context: testContext(t), passed: make(chan struct{})}
}

func (l late) Done() <-chan struct{} { return l.passed }

func (l late) Err() error {
	select {
	case <-l.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// newMessage is event number seq of an aggregate.
func newMessage(aggregate string, seq int64) *publish.Message {
	id := outbox.NewID()
	return &publish.Message{
		ID: id, Topic: orders, Key: "order/" + aggregate, Seq: seq,
		Body:       fmt.Appendf(nil, `{"eventId":"%s","data":{"seq":%d}}`, id, seq),
		Attributes: map[string]string{"event_id": id.String(), "outbox_seq": fmt.Sprint(seq)},
	}
}

func newMessages(aggregate string, n int) []*publish.Message {
	messages := make([]*publish.Message, n)
	for i := range messages {
		messages[i] = newMessage(aggregate, int64(i+1))
	}
	return messages
}

// pending is a message that was enqueued.
type pending struct {
	message *publish.Message
	answer  chan error
}

// wait returns the answer.
func (p pending) wait(t *testing.T) error {
	t.Helper()
	return eventually.Receive(t, fmt.Sprintf("event %d of %s is answered", p.message.Seq, p.message.Key), p.answer)
}

func enqueue(ctx context.Context, pipeliner publish.Pipeliner, messages ...*publish.Message) []pending {
	all := make([]pending, len(messages))
	for i, message := range messages {
		all[i] = pending{message: message, answer: make(chan error, 2)} // room for a second answer, which is one too many
		pipeliner.Enqueue(ctx, message, func(err error) { all[i].answer <- err })
	}
	return all
}

// checkHistory says what is wrong with what the broker accepted: events that are missing, changed or
// strange, and events that came for the first time behind a later one of their aggregate. Copies are
// allowed and counted.
func checkHistory(history []pubsubemulator.Message, want ...[]*publish.Message) (problems []string, copies int) {
	type position struct {
		aggregate, number int
	}
	positions := map[string]position{}
	for a, messages := range want {
		for n, m := range messages {
			positions[m.ID.String()] = position{a, n}
		}
	}
	seen := map[string]bool{}
	next := make([]int, len(want))
	for _, got := range history {
		id := got.Attributes["event_id"]
		at, known := positions[id]
		switch {
		case !known:
			problems = append(problems, "strange: "+id)
		case seen[id]:
			copies++
		case at.number != next[at.aggregate]:
			problems = append(problems, fmt.Sprintf("order: %s: event %d came where %d was due", got.OrderingKey, at.number+1,
				next[at.aggregate]+1))
		}
		if known && string(got.Data) != string(want[at.aggregate][at.number].Body) {
			problems = append(problems, "changed: "+id)
		}
		if known && !seen[id] {
			next[at.aggregate] = max(next[at.aggregate], at.number+1)
		}
		seen[id] = true
	}
	for id := range positions {
		if !seen[id] {
			problems = append(problems, "lost: "+id)
		}
	}
	return problems, copies
}

func (w *env) expectHistory(t *testing.T, want ...[]*publish.Message) (copies int) {
	t.Helper()
	problems, copies := checkHistory(w.journal(t), want...)
	if len(problems) > 0 {
		t.Errorf("%d problems:\n%s", len(problems), strings.Join(problems[:min(len(problems), 10)], "\n"))
	}
	return copies
}

// newPlainClient is a client as an application makes it.
func newPlainClient(t *testing.T) *pubsub.Client {
	t.Helper()
	client, err := pubsub.NewClient(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
