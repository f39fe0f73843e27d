package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

const (
	topicName = "projects/p/topics/orders"
	lateSub   = "projects/p/subscriptions/late" // read only after the last kill
	busySub   = "projects/p/subscriptions/busy" // read all the time
	keys      = 60
)

// ledger is what the clients know: which publishes were confirmed, in which order per key, and what
// the busy subscriber got.
type ledger struct {
	mu        sync.Mutex
	confirmed []string            // ids, of all keys
	byKey     map[string][]string // payloads
	payloads  map[string]string   // by id
	busy      map[string]bool     // ids
	grown     chan struct{}       // told at every confirmed publish
}

// Every publish that was confirmed to a client is in the journal and gets delivered, in the order of
// its key, however often the emulator is killed in the middle of it.
func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	l := &ledger{
		byKey: map[string][]string{}, payloads: map[string]string{}, busy: map[string]bool{},
		grown: make(chan struct{}, 1),
	}
	const rounds, perRound = 3, 250
	for round := range rounds {
		p := launch(t, dir)
		conn := dial(t, p.addr)
		if round == 0 {
			createTopology(ctx, t, conn)
		}
		runRound(ctx, t, p, conn, l, round, (round+1)*perRound)
		_ = conn.Close()
	}
	p := launch(t, dir)
	history := checkJournal(t, dir, l)
	checkLate(ctx, t, p, history)
	checkBusy(ctx, t, p, l, history)
	if err := p.end(t, os.Interrupt); err != nil {
		t.Error(err)
	}
}

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func createTopology(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	if _, err := pb.NewPublisherClient(conn).CreateTopic(ctx, &pb.Topic{Name: topicName}); err != nil {
		t.Fatal(err)
	}
	for name, ordered := range map[string]bool{lateSub: true, busySub: false} {
		sub := &pb.Subscription{Name: name, Topic: topicName, EnableMessageOrdering: ordered}
		if _, err := pb.NewSubscriberClient(conn).CreateSubscription(ctx, sub); err != nil {
			t.Fatal(err)
		}
	}
}

// runRound publishes and receives until the ledger holds want confirmed publishes, then kills the
// emulator while both go on.
func runRound(ctx context.Context, t *testing.T, p *process, conn *grpc.ClientConn, l *ledger, round, want int) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var clients sync.WaitGroup
	publisher := pb.NewPublisherClient(conn)
	const publishers = 4
	for n := range publishers {
		clients.Go(func() { l.publishUntilError(ctx, publisher, round, n, publishers) })
	}
	clients.Go(func() { l.receiveUntilError(ctx, pb.NewSubscriberClient(conn)) })
	for l.count() < want {
		select {
		case <-l.grown:
		case <-ctx.Done():
			t.Fatalf("round %d: only %d of %d publishes were confirmed", round, l.count(), want)
		}
	}
	_ = p.end(t, os.Kill)
	cancel()
	clients.Wait()
}

// publishUntilError publishes to the keys that are n modulo of, each message once: a payload whose
// publish failed is never used again.
func (l *ledger) publishUntilError(ctx context.Context, client pb.PublisherClient, round, n, of int) {
	for i := n; ; i += of {
		key := fmt.Sprint("key-", i%keys)
		payload := fmt.Sprintf("round %d message %d", round, i)
		res, err := client.Publish(ctx, &pb.PublishRequest{Topic: topicName, Messages: []*pb.PubsubMessage{
			{Data: []byte(payload), OrderingKey: key, Attributes: map[string]string{"round": fmt.Sprint(round)}},
		}})
		if err != nil {
			return
		}
		l.confirm(res.GetMessageIds()[0], key, payload)
	}
}

func (l *ledger) confirm(id, key, payload string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirmed = append(l.confirmed, id)
	l.byKey[key] = append(l.byKey[key], payload)
	l.payloads[id] = payload
	select {
	case l.grown <- struct{}{}:
	default:
	}
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.confirmed)
}

// receiveUntilError notes a message before it acknowledges it, as a subscriber must.
func (l *ledger) receiveUntilError(ctx context.Context, client pb.SubscriberClient) {
	for {
		res, err := client.Pull(ctx, &pb.PullRequest{Subscription: busySub, MaxMessages: 20})
		if err != nil {
			return
		}
		ack := &pb.AcknowledgeRequest{Subscription: busySub}
		l.mu.Lock()
		for _, r := range res.GetReceivedMessages() {
			l.busy[r.GetMessage().GetMessageId()] = true
			ack.AckIds = append(ack.AckIds, r.GetAckId())
		}
		l.mu.Unlock()
		if _, err := client.Acknowledge(ctx, ack); err != nil {
			return
		}
	}
}

// checkJournal checks that the journal has every confirmed publish, under one id each, in order.
func checkJournal(t *testing.T, dir string, l *ledger) []pubsubemulator.Message {
	t.Helper()
	history, err := pubsubemulator.ReadMessages(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d publishes were confirmed, %d are in the journal", len(l.confirmed), len(history))
	kept := map[string]string{}
	byKey := map[string][]string{}
	for _, m := range history {
		if _, twice := kept[m.ID]; twice {
			t.Errorf("id %s was given twice", m.ID)
		}
		kept[m.ID] = string(m.Data)
		byKey[m.OrderingKey] = append(byKey[m.OrderingKey], string(m.Data))
	}
	for _, id := range l.confirmed {
		if kept[id] != l.payloads[id] {
			t.Errorf("message %s was confirmed with %q, the journal has %q", id, l.payloads[id], kept[id])
		}
	}
	for key, payloads := range l.byKey {
		// The journal may have more: publishes whose answer the kill took away.
		confirmed := slices.DeleteFunc(slices.Clone(byKey[key]), func(p string) bool { return !slices.Contains(payloads, p) })
		if !slices.Equal(confirmed, payloads) {
			t.Errorf("%s: confirmed in the order %q, journalled as %q", key, payloads, confirmed)
		}
	}
	return history
}

// receiveAll takes n different messages with the client library, in the order of their first arrival.
func receiveAll(ctx context.Context, t *testing.T, p *process, sub string, n int) []*pubsub.Message {
	t.Helper()
	client, err := pubsub.NewClient(ctx, "p", option.WithEndpoint(p.addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	seen := map[string]bool{}
	var messages []*pubsub.Message
	err = client.Subscriber(sub).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		mu.Lock()
		defer mu.Unlock()
		m.Ack()
		if !seen[m.ID] {
			seen[m.ID] = true
			messages = append(messages, m)
		}
		if len(messages) == n {
			cancel()
		}
	})
	if err != nil || len(messages) != n {
		t.Fatalf("%s delivered %d of %d messages: %v", sub, len(messages), n, err)
	}
	return messages
}

// checkLate checks that a subscriber who never came gets the whole history, in order per key.
func checkLate(ctx context.Context, t *testing.T, p *process, history []pubsubemulator.Message) {
	t.Helper()
	want, got := map[string][]string{}, map[string][]string{}
	for _, m := range history {
		want[m.OrderingKey] = append(want[m.OrderingKey], m.ID)
	}
	for _, m := range receiveAll(ctx, t, p, lateSub, len(history)) {
		got[m.OrderingKey] = append(got[m.OrderingKey], m.ID)
	}
	if !maps.EqualFunc(want, got, slices.Equal) {
		t.Errorf("journalled %v, delivered %v", want, got)
	}
}

// checkBusy checks that the subscriber who was there all the time misses nothing in the end.
func checkBusy(ctx context.Context, t *testing.T, p *process, l *ledger, history []pubsubemulator.Message) {
	t.Helper()
	missing := map[string]bool{}
	for _, m := range history {
		if !l.busy[m.ID] {
			missing[m.ID] = true
		}
	}
	t.Logf("the busy subscriber has %d messages and misses %d", len(l.busy), len(missing))
	// Some of what it has noted was not acknowledged before a kill and comes again.
	conn := dial(t, p.addr)
	defer func() { _ = conn.Close() }()
	client := pb.NewSubscriberClient(conn)
	for len(missing) > 0 {
		res, err := client.Pull(ctx, &pb.PullRequest{Subscription: busySub, MaxMessages: 100})
		if err != nil {
			t.Fatalf("the busy subscriber still misses %d messages: %v", len(missing), err)
		}
		for _, r := range res.GetReceivedMessages() {
			delete(missing, r.GetMessage().GetMessageId())
		}
	}
}
