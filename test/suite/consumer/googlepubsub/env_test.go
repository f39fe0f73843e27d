package googlepubsub_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9/logging"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

const (
	project = "p"
	orders  = "orders"
	dead    = "dead-letters"
	name    = "compliance"
)

// TestMain is also the entry of the emulator that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == server.Emulator {
		if err := server.RunEmulator(context.Background(), os.Args[2], os.Args[3], os.Args[4]); err != nil {
			panic(err)
		}
		return
	}
	logging.Disable()
	os.Exit(goroutines.Run(m, goroutines.Linked, goroutines.Received))
}

type order struct {
	Number int `json:"number"`
}

var placed = outbox.Define[order](outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: orders})

// env is an emulator with a topic and a subscription of it, and a topic for dead letters, which are kept.
type env struct {
	emulator *pubsubemulator.Server
	faults   string // the address of the fault port
	client   *pubsub.Client
	outcomes outcomes
}

// longestBackoff is what the emulator makes of the seconds of a retry policy.
const longestBackoff = 20 * time.Millisecond

func newEnv(t *testing.T, subscription *pb.Subscription) *env {
	t.Helper()
	emulator, err := pubsubemulator.Start(pubsubemulator.Config{Dir: t.TempDir(), LongestBackoff: longestBackoff})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = emulator.Close() })
	w := &env{emulator: emulator, faults: emulator.FaultAddr(), client: newClient(t, emulator.Addr())}
	w.createTopic(t, orders)
	w.createTopic(t, dead)
	w.createSubscription(t, &pb.Subscription{
		Name: subscriptionName(dead), Topic: topicName(dead), AckDeadlineSeconds: 600,
	})
	if subscription != nil {
		w.createSubscription(t, subscription)
	}
	return w
}

func newClient(t *testing.T, address string) *pubsub.Client {
	t.Helper()
	client, err := pubsub.NewClient(t.Context(), project, option.WithEndpoint(address), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func topicName(id string) string        { return "projects/" + project + "/topics/" + id }
func subscriptionName(id string) string { return "projects/" + project + "/subscriptions/" + id }

// recommended is a subscription as the package's documentation wants it.
func recommended() *pb.Subscription {
	sub := bare()
	sub.EnableMessageOrdering = true
	sub.DeadLetterPolicy = &pb.DeadLetterPolicy{DeadLetterTopic: topicName(dead), MaxDeliveryAttempts: 5}
	sub.RetryPolicy = &pb.RetryPolicy{
		MinimumBackoff: durationpb.New(10 * time.Second), MaximumBackoff: durationpb.New(10 * time.Minute),
	}
	return sub
}

// bare is a subscription as one gets it without asking for anything.
func bare() *pb.Subscription {
	return &pb.Subscription{Name: subscriptionName(name), Topic: topicName(orders), AckDeadlineSeconds: 10}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	t.Cleanup(cancel)
	return ctx
}

func (w *env) createTopic(t *testing.T, id string) {
	t.Helper()
	if _, err := w.client.TopicAdminClient.CreateTopic(testContext(t), &pb.Topic{Name: topicName(id)}); err != nil {
		t.Fatal(err)
	}
}

func (w *env) createSubscription(t *testing.T, subscription *pb.Subscription) {
	t.Helper()
	if _, err := w.client.SubscriptionAdminClient.CreateSubscription(testContext(t), subscription); err != nil {
		t.Fatal(err)
	}
}

func (w *env) inject(t *testing.T, fault pubsubemulator.Fault) {
	t.Helper()
	if err := w.emulator.Inject(fault); err != nil {
		t.Fatal(err)
	}
}

// run runs the loop until the test ends, or the function that it returns is called: that returns when the loop has
// stopped. Its leases are the shortest there are: what a stop gives back, Pub/Sub may send to the stream that is being
// closed, and then it comes again when that lease is over.
func (w *env) run(t *testing.T, handler *consumer.Consumer, config googlepubsub.ConsumeConfig) (stop func()) {
	t.Helper()
	if config.Subscription == "" {
		config.Subscription = name
	}
	config.Lease = cmp.Or(config.Lease, 10*time.Second)
	return background.Run(t, "the loop", func(ctx context.Context) error {
		return googlepubsub.Consume(ctx, w.client, handler, config)
	})
}

// consumer makes a consumer whose outcomes the env counts.
func (w *env) consumer(t *testing.T, config consumer.Config, rules ...consumer.Rule) *consumer.Consumer {
	t.Helper()
	config.Name, config.Observe = name, w.outcomes.observe
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := consumer.New(config, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// outcomes are what became of deliveries.
type outcomes struct {
	mu  sync.Mutex
	all []consumer.Observation
}

func (o *outcomes) observe(_ context.Context, observation consumer.Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, observation)
}

// count counts the deliveries with this outcome, of one aggregate or, without one, of all.
func (o *outcomes) count(outcome consumer.Outcome, aggregate string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, each := range o.all {
		if each.Outcome == outcome && (aggregate == "" || each.Event.Aggregate.ID == aggregate) {
			n++
		}
	}
	return n
}

// of counts the deliveries of one aggregate, whatever became of them.
func (o *outcomes) of(aggregate string) (n int) {
	for _, outcome := range consumer.Outcomes {
		n += o.count(outcome, aggregate)
	}
	return n
}

// newMessage is an event of an aggregate as a relay publishes it.
func newMessage(aggregate string, number int) *pb.PubsubMessage {
	id := outbox.NewID()
	return &pb.PubsubMessage{
		OrderingKey: "order/" + aggregate,
		Data: fmt.Appendf(nil, `{"version":1,"eventId":"%s","occurredAt":"2026-01-02T03:04:05Z","data":{"number":%d}}`,
			id, number),
		Attributes: map[string]string{
			"event_id": id.String(), "event_type": "order_placed", "aggregate_type": "order", "aggregate_id": aggregate,
			"created_at": "2026-01-02T03:04:05.000000Z", "outbox_seq": fmt.Sprint(number),
		},
	}
}

// publish sends messages, in order. It goes on while the emulator is away.
func (w *env) publish(t *testing.T, messages ...*pb.PubsubMessage) {
	t.Helper()
	ctx := testContext(t)
	for _, message := range messages {
		_, err := w.client.TopicAdminClient.Publish(ctx, &pb.PublishRequest{
			Topic: topicName(orders), Messages: []*pb.PubsubMessage{message},
		})
		for status.Code(err) == codes.Unavailable && ctx.Err() == nil {
			_, err = w.client.TopicAdminClient.Publish(ctx, &pb.PublishRequest{
				Topic: topicName(orders), Messages: []*pb.PubsubMessage{message},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// pull takes what is in a subscription now, and acknowledges it. The emulator waits a moment for the first.
func (w *env) pull(t *testing.T, subscription string) (messages []*pb.PubsubMessage) {
	t.Helper()
	ctx, full := testContext(t), subscriptionName(subscription)
	answer, err := w.client.SubscriptionAdminClient.Pull(ctx, &pb.PullRequest{Subscription: full, MaxMessages: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, received := range answer.GetReceivedMessages() {
		messages = append(messages, received.GetMessage())
		if err := w.client.SubscriptionAdminClient.Acknowledge(ctx, &pb.AcknowledgeRequest{
			Subscription: full, AckIds: []string{received.GetAckId()},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return messages
}

// pullSome waits for messages of a subscription, so many at least.
func (w *env) pullSome(t *testing.T, subscription string, count int) (messages []*pb.PubsubMessage) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%d messages of %s", count, subscription), func() bool {
		messages = append(messages, w.pull(t, subscription)...)
		return len(messages) >= count
	})
	return messages
}

// wantLeft wants that of all subscriptions the one with most has so many messages to acknowledge, whoever has them.
func (w *env) wantLeft(t *testing.T, want int) {
	t.Helper()
	if got := w.waiting(t); got != want {
		t.Errorf("%d messages are not acknowledged, want %d", got, want)
	}
}

func (w *env) waiting(t *testing.T) int {
	t.Helper()
	request, err := http.NewRequestWithContext(testContext(t), http.MethodGet, "http://"+w.faults+"/stats", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var stats pubsubemulator.Stats
	if err := json.NewDecoder(answer.Body).Decode(&stats); err != nil {
		t.Fatal(err)
	}
	return stats.Waiting
}

// effects is a database with an inbox and a table of effects, on which nothing keeps one from happening twice.
type effects struct{ *pgtest.DB }

func newEffects(t *testing.T) effects {
	t.Helper()
	db := pgtest.New(t, pgtest.Servers()[0])
	if err := schema.Inbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", db.URL),
		schema.Options{Schema: db.Schema}); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, "CREATE TABLE {schema}.effects (n bigint GENERATED ALWAYS AS IDENTITY, event_id uuid NOT NULL, aggregate "+
		"text NOT NULL, number int NOT NULL)")
	return effects{db}
}

// handle is a handler as the documentation shows it.
func (e effects) handle(ctx context.Context, event *consumer.Event, payload order) error {
	return outbox.InTx(ctx, e.Pool, func(ctx context.Context, tx pgx.Tx) error {
		first, err := inbox.First(ctx, outbox.InSchema(tx, e.Schema), name, event.ID)
		if err != nil {
			return fmt.Errorf("inbox: %w", err)
		}
		if !first {
			return consumer.ErrDuplicate
		}
		_, err = tx.Exec(ctx, e.SQL("INSERT INTO {schema}.effects (event_id, aggregate, number) VALUES ($1, $2, $3)"),
			event.ID.String(), event.Aggregate.ID, payload.Number)
		return err
	})
}

// wantOnce wants one effect of each of so many events.
func (e effects) wantOnce(t *testing.T, events int) {
	t.Helper()
	if all, different := e.Count(t, "SELECT count(*) FROM {schema}.effects"),
		e.Count(t, "SELECT count(DISTINCT event_id) FROM {schema}.effects"); all != events || different != events {
		t.Errorf("%d effects of %d events, want one of each of %d", all, different, events)
	}
}

var errBroken = errors.New("broken")
