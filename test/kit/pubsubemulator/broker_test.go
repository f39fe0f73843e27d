package pubsubemulator_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func TestPublishAndReceive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	client := newClient(t, server)
	publisher := client.Publisher(topicA)
	defer publisher.Stop()
	ctx := testContext(t)
	id, err := publisher.Publish(ctx, &pubsub.Message{
		Data: []byte("\x00\xff<&"), Attributes: map[string]string{"k": "v"},
	}).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}

	got := receive(t, client, subA, 1)[0]
	if got.ID != id || string(got.Data) != "\x00\xff<&" || got.Attributes["k"] != "v" {
		t.Errorf("received %+v", got)
	}
	kept := journal(t, dir)
	if len(kept) != 1 || kept[0].ID != id || kept[0].Topic != topicA || string(kept[0].Data) != "\x00\xff<&" ||
		kept[0].Attributes["k"] != "v" {
		t.Errorf("journalled %+v", kept)
	}
	if !kept[0].PublishTime.Equal(got.PublishTime) {
		t.Errorf("delivered with publish time %v, journalled with %v", got.PublishTime, kept[0].PublishTime)
	}
	c.expectEmpty(t, subA)
}

func TestOrderedDelivery(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
	client := newClient(t, server)
	publisher := client.Publisher(topicA)
	publisher.EnableMessageOrdering = true
	defer publisher.Stop()
	const keys, each = 20, 10
	for i := range each {
		for k := range keys {
			key := fmt.Sprint("k", k)
			publisher.Publish(testContext(t), &pubsub.Message{Data: fmt.Append(nil, i), OrderingKey: key})
		}
	}
	publisher.Flush()

	byKey := map[string][]string{}
	for _, m := range receive(t, client, subA, keys*each) {
		byKey[m.OrderingKey] = append(byKey[m.OrderingKey], string(m.Data))
	}
	for key, got := range byKey {
		expectEqual(t, key, got, numbers("", each))
	}
}

func TestBacklogIsDeliveredInBulk(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	c.createSub(t, &pb.Subscription{Name: subB, Topic: topicA})
	const backlog = 5000
	for i := range backlog / 1000 {
		c.publish(t, topicA, "", numbers(fmt.Sprint(i, "-"), 1000)...)
	}
	began := time.Now()
	for got := 0; got < backlog; {
		received := c.pull(t, subB, 100)
		c.ack(t, subB, received...)
		got += len(received)
	}
	pulled := time.Since(began)
	receive(t, newClient(t, server), subA, backlog)
	// One message every ten milliseconds would take 50 seconds, and pulls of a hundred a few. A busy machine is slow with
	// both.
	if streamed := time.Since(began) - pulled; streamed > 5*pulled+20*time.Second {
		t.Errorf("%d messages took %s on a stream, and %s with pulls", backlog, streamed, pulled)
	}
}

func TestNackAndStaleAck(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	c.publish(t, topicA, "", "x")

	first := c.pull(t, subA, 1)[0]
	nack := &pb.ModifyAckDeadlineRequest{Subscription: subA, AckIds: []string{first.GetAckId()}}
	if _, err := c.ModifyAckDeadline(testContext(t), nack); err != nil {
		t.Fatal(err)
	}
	c.ack(t, subA, first) // after the nack: must not count
	second := c.pull(t, subA, 1)[0]
	if second.GetMessage().GetMessageId() != first.GetMessage().GetMessageId() || second.GetAckId() == first.GetAckId() {
		t.Errorf("delivered %v, then %v", first, second)
	}
	c.ack(t, subA, second)
	c.expectEmpty(t, subA)
}

func TestStreamHonoursFlowControlAndPings(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	c.publish(t, topicA, "", numbers("", 3)...)
	stream, err := c.StreamingPull(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	send := func(req *pb.StreamingPullRequest) {
		t.Helper()
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
	}
	send(&pb.StreamingPullRequest{
		Subscription: subA, StreamAckDeadlineSeconds: 60, MaxOutstandingMessages: 1, ProtocolVersion: 1,
	})
	seen := map[string]bool{}
	for range 3 {
		res, err := stream.Recv()
		if err != nil || len(res.GetReceivedMessages()) != 1 {
			t.Fatalf("want one message, got %v, %v", res, err)
		}
		seen[res.GetReceivedMessages()[0].GetMessage().GetMessageId()] = true
		// While the message is outstanding there is nothing else to come than the answer to a ping.
		send(&pb.StreamingPullRequest{})
		if ping, err := stream.Recv(); err != nil || len(ping.GetReceivedMessages()) != 0 {
			t.Fatalf("want the answer to a ping, got %v, %v", ping, err)
		}
		send(&pb.StreamingPullRequest{AckIds: []string{res.GetReceivedMessages()[0].GetAckId()}})
	}
	if len(seen) != 3 {
		t.Errorf("received %v", seen)
	}
	if _, err := c.DeleteSubscription(testContext(t), &pb.DeleteSubscriptionRequest{Subscription: subA}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.NotFound {
		t.Errorf("stream of a deleted subscription ended with %v", err)
	}
}

func TestDeadLetter(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA, topicB)
	policy := &pb.DeadLetterPolicy{DeadLetterTopic: topicB, MaxDeliveryAttempts: 2}
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, DeadLetterPolicy: policy})
	c.createSub(t, &pb.Subscription{Name: subB, Topic: topicB})
	c.publish(t, topicA, "", "poison")
	for attempt := int32(1); attempt <= 2; attempt++ {
		r := c.pull(t, subA, 1)[0]
		if r.GetDeliveryAttempt() != attempt {
			t.Errorf("attempt %d is delivered as %d", attempt, r.GetDeliveryAttempt())
		}
		nack := &pb.ModifyAckDeadlineRequest{Subscription: subA, AckIds: []string{r.GetAckId()}}
		if _, err := c.ModifyAckDeadline(testContext(t), nack); err != nil {
			t.Fatal(err)
		}
	}
	c.expectEmpty(t, subA)
	dead := c.pull(t, subB, 1)[0]
	attributes := dead.GetMessage().GetAttributes()
	if string(dead.GetMessage().GetData()) != "poison" || attributes["CloudPubSubDeadLetterSourceSubscription"] != "a" ||
		attributes["CloudPubSubDeadLetterSourceSubscriptionProject"] != "p" ||
		attributes["CloudPubSubDeadLetterSourceDeliveryCount"] != "2" {
		t.Errorf("dead letter is %v", dead)
	}
	c.ack(t, subB, dead)
	c.expectEmpty(t, subB)
	got, err := c.GetSubscription(testContext(t), &pb.GetSubscriptionRequest{Subscription: subA})
	if err != nil || got.GetDeadLetterPolicy().GetMaxDeliveryAttempts() != 2 {
		t.Errorf("the policy reads %v, %v", got.GetDeadLetterPolicy(), err)
	}
}

func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, t.TempDir()))
	ctx := testContext(t)
	c.createTopics(t, topicA)
	message := []*pb.PubsubMessage{{Data: []byte("x")}}
	for name, test := range map[string]struct {
		call func() error
		want codes.Code
	}{
		"publish to no topic": {func() error {
			_, err := c.Publish(ctx, &pb.PublishRequest{Topic: topicB, Messages: message})
			return err
		}, codes.NotFound},
		"publish nothing": {func() error {
			_, err := c.Publish(ctx, &pb.PublishRequest{Topic: topicA})
			return err
		}, codes.InvalidArgument},
		"pull from no subscription": {func() error {
			_, err := c.Pull(ctx, &pb.PullRequest{Subscription: subB, MaxMessages: 1})
			return err
		}, codes.NotFound},
		"create a topic twice": {func() error {
			_, err := c.CreateTopic(ctx, &pb.Topic{Name: topicA})
			return err
		}, codes.AlreadyExists},
		"update nothing": {func() error {
			_, err := c.UpdateTopic(ctx, &pb.UpdateTopicRequest{UpdateMask: &fieldmaskpb.FieldMask{}})
			return err
		}, codes.InvalidArgument},
		"seek": {func() error {
			_, err := c.Seek(ctx, &pb.SeekRequest{Subscription: subA})
			return err
		}, codes.Unimplemented},
	} {
		if err := test.call(); status.Code(err) != test.want {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

func TestConcurrentPublishersWithFsync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: dir, Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, server)
	c := dial(t, server)
	c.createTopics(t, topicA)
	var mu sync.Mutex
	var ids []string
	var publishers sync.WaitGroup
	for range 8 {
		publishers.Go(func() {
			for range 20 {
				got := c.publish(t, topicA, "", "x", "y")
				mu.Lock()
				ids = append(ids, got...)
				mu.Unlock()
			}
		})
	}
	publishers.Wait()
	var kept []string
	for _, m := range journal(t, dir) {
		kept = append(kept, m.ID)
	}
	slices.Sort(ids)
	slices.Sort(kept)
	expectEqual(t, "journal", kept, ids)
	if unique := slices.Compact(ids); len(unique) != 8*20*2 {
		t.Errorf("%d ids are different, want %d", len(unique), 8*20*2)
	}
}
