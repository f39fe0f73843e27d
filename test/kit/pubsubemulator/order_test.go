package pubsubemulator_test

import (
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// puller is a StreamingPull without the client library.
type puller struct {
	pb.Subscriber_StreamingPullClient
	ids map[string]string // the ack id of each text's latest delivery
}

// openStream returns when the emulator serves the stream. Its leases last 600 seconds unless seconds says otherwise.
func (c rpc) openStream(t *testing.T, sub string, most int64, seconds int32) *puller {
	t.Helper()
	stream, err := c.StreamingPull(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if seconds == 0 {
		seconds = 600
	}
	p := &puller{stream, map[string]string{}}
	p.send(t, &pb.StreamingPullRequest{
		Subscription: sub, StreamAckDeadlineSeconds: seconds, MaxOutstandingMessages: most, ProtocolVersion: 1,
	})
	p.ping(t)
	return p
}

func (p *puller) send(t *testing.T, req *pb.StreamingPullRequest) {
	t.Helper()
	if err := p.Send(req); err != nil {
		t.Fatal(err)
	}
}

// ping checks that there is nothing to come but the answer.
func (p *puller) ping(t *testing.T) {
	t.Helper()
	p.send(t, &pb.StreamingPullRequest{})
	if res, err := p.Recv(); err != nil || len(res.GetReceivedMessages()) > 0 {
		t.Fatalf("want the answer to a ping, got %v, %v", res, err)
	}
}

// want receives these texts, in this order.
func (p *puller) want(t *testing.T, texts string) {
	t.Helper()
	for want := range strings.FieldsSeq(texts) {
		res, err := p.Recv()
		if err != nil || len(res.GetReceivedMessages()) != 1 {
			t.Fatalf("want %s of %q, got %v, %v", want, texts, res, err)
		}
		r := res.GetReceivedMessages()[0]
		p.ids[string(r.GetMessage().GetData())] = r.GetAckId()
		if got := string(r.GetMessage().GetData()); got != want {
			t.Fatalf("want %s of %q, got %s", want, texts, got)
		}
	}
}

func (p *puller) ackIDs(texts string) []string {
	var ids []string
	for text := range strings.FieldsSeq(texts) {
		ids = append(ids, p.ids[text])
	}
	return ids
}

func (c rpc) tryAck(t *testing.T, sub string, ids ...string) error {
	t.Helper()
	_, err := c.Acknowledge(testContext(t), &pb.AcknowledgeRequest{Subscription: sub, AckIds: ids})
	return err
}

func (c rpc) deadline(t *testing.T, sub string, seconds int32, ids ...string) {
	t.Helper()
	_, err := c.ModifyAckDeadline(testContext(t), &pb.ModifyAckDeadlineRequest{
		Subscription: sub, AckIds: ids, AckDeadlineSeconds: seconds,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c rpc) nack(t *testing.T, sub string, ids ...string) {
	t.Helper()
	c.deadline(t, sub, 0, ids...)
}

// TestManyOfAKeyAreOut at a time, as many as the subscriber takes, and the oldest first.
func TestManyOfAKeyAreOut(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, t.TempDir()))
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
	p := c.openStream(t, subA, 4, 0)
	c.publish(t, topicA, "k", "1", "2", "3", "4", "5")
	c.publish(t, topicA, "other", "x")
	p.want(t, "1 2 3 4")
	p.ping(t)
	if err := c.tryAck(t, subA, p.ackIDs("2")...); err != nil {
		t.Fatal(err)
	}
	p.want(t, "5")
	p.ping(t)
	if err := c.tryAck(t, subA, p.ackIDs("1")...); err != nil {
		t.Fatal(err)
	}
	p.want(t, "x")
}

// TestARedeliveryTakesTheLaterOnesAlong: of the same key, acknowledged ones included, and of no other key.
func TestARedeliveryTakesTheLaterOnesAlong(t *testing.T) {
	t.Parallel()
	for name, bringBack := range map[string]func(c rpc, p *puller){
		"nack":     func(c rpc, p *puller) { c.nack(t, subA, p.ackIDs("2")...) },
		"deadline": func(c rpc, p *puller) { c.deadline(t, subA, 1, p.ackIDs("2")...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, t.TempDir())
			c := dial(t, server)
			c.createTopics(t, topicA)
			c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
			p := c.openStream(t, subA, 0, 0)
			c.publish(t, topicA, "k", "1", "2", "3", "4")
			c.publish(t, topicA, "other", "x", "y")
			p.want(t, "1 2 3 4 x y")
			if err := c.tryAck(t, subA, p.ackIDs("3 x")...); err != nil {
				t.Fatal(err)
			}
			if stats := server.Stats(); stats.Waiting != 4 {
				t.Errorf("%d messages wait, want 4", stats.Waiting)
			}
			before := p.ackIDs("4")
			bringBack(c, p)
			p.want(t, "2 3 4")
			if err := c.tryAck(t, subA, before...); err != nil {
				t.Errorf("an old ack id is an error: %v", err)
			}
			if stats := server.Stats(); stats.Waiting != 5 {
				t.Errorf("%d messages wait, want 5: an old ack id counts", stats.Waiting)
			}
			if err := c.tryAck(t, subA, p.ackIDs("4 1 y 3 2")...); err != nil {
				t.Fatal(err)
			}
			p.ping(t)
			if stats := server.Stats(); stats.Waiting != 0 {
				t.Errorf("%d messages wait, want none", stats.Waiting)
			}
		})
	}
}

// TestAKeyStaysWithItsStream: while it has messages out; the other stream gets those of other keys.
func TestAKeyStaysWithItsStream(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, t.TempDir()))
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
	first := c.openStream(t, subA, 2, 0)
	c.publish(t, topicA, "k", "1", "2", "3")
	first.want(t, "1 2")
	second := c.openStream(t, subA, 0, 0) // it is served, and there is nothing for it
	c.publish(t, topicA, "other", "x")
	second.want(t, "x")
	if err := c.tryAck(t, subA, first.ackIDs("1")...); err != nil {
		t.Fatal(err)
	}
	first.want(t, "3")
	// When nothing of the key is out, everybody may have it: also when the stream is gone.
	if err := first.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Recv(); err == nil {
		t.Fatal("the stream is not over")
	}
	c.publish(t, topicA, "k", "4")
	second.ping(t)
	if err := c.tryAck(t, subA, first.ackIDs("2 3")...); err != nil {
		t.Fatal(err)
	}
	second.want(t, "4")
}

// TestAPullGetsOneBatchOfAKey at a time, like one from Google's emulator.
func TestAPullGetsOneBatchOfAKey(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, t.TempDir()))
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
	c.publish(t, topicA, "k", "1", "2", "3")
	batch := c.pull(t, subA, 2)
	c.expectEmpty(t, subA)
	c.ack(t, subA, batch...)
	if texts, _ := c.drain(t, subA, 1); texts[0] != "3" {
		t.Errorf("the next one is %v", texts)
	}
}

// TestARetryPolicyHoldsTheKey: longer from failure to failure, and no other key waits.
func TestARetryPolicyHoldsTheKey(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, t.TempDir()))
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{
		Name: subA, Topic: topicA, EnableMessageOrdering: true, RetryPolicy: &pb.RetryPolicy{
			MinimumBackoff: durationpb.New(200 * time.Millisecond), MaximumBackoff: durationpb.New(400 * time.Millisecond),
		},
	})
	p := c.openStream(t, subA, 0, 0)
	c.publish(t, topicA, "k", "1", "2")
	p.want(t, "1 2")
	for i, least := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond} {
		failed := time.Now()
		c.nack(t, subA, p.ackIDs("1")...)
		c.publish(t, topicA, "other", "x")
		p.want(t, "x 1 2")
		if took := time.Since(failed); took < least {
			t.Errorf("failure %d: it came again after %s, want %s", i+1, took, least)
		}
	}
}

func TestLongestBackoff(t *testing.T) {
	t.Parallel()
	server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: t.TempDir(), LongestBackoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, server)
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, RetryPolicy: &pb.RetryPolicy{}})
	p := c.openStream(t, subA, 0, 0)
	c.publish(t, topicA, "", "1")
	for range 10 { // which would take ten seconds, twenty and so on
		p.want(t, "1")
		c.nack(t, subA, p.ackIDs("1")...)
	}
}

// TestAttemptsAreAMessagesOwn: a message that only comes again because of an earlier one has not failed.
func TestAttemptsAreAMessagesOwn(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, t.TempDir()))
	c.createTopics(t, topicA, topicB)
	c.createSub(t, &pb.Subscription{
		Name: subA, Topic: topicA, EnableMessageOrdering: true,
		DeadLetterPolicy: &pb.DeadLetterPolicy{DeadLetterTopic: topicB, MaxDeliveryAttempts: 5},
	})
	c.createSub(t, &pb.Subscription{Name: subB, Topic: topicB})
	c.publish(t, topicA, "k", "1", "2")
	for attempt := int32(1); attempt <= 5; attempt++ {
		both := c.pull(t, subA, 2)
		if both[0].GetDeliveryAttempt() != attempt || both[1].GetDeliveryAttempt() != 1 {
			t.Errorf("attempt %d: delivered %v", attempt, both)
		}
		if attempt%2 == 0 {
			c.nack(t, subA, both[0].GetAckId())
		} else {
			c.deadline(t, subA, 1, both[0].GetAckId())
		}
	}
	if texts, _ := c.drain(t, subA, 1); texts[0] != "2" {
		t.Errorf("behind the dead letter comes %v", texts)
	}
	dead := c.pull(t, subB, 1)[0].GetMessage()
	if string(dead.GetData()) != "1" || dead.GetAttributes()["CloudPubSubDeadLetterSourceDeliveryCount"] != "5" {
		t.Errorf("the dead letter is %v", dead)
	}
}

func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{
		Name: subA, Topic: topicA, EnableMessageOrdering: true, EnableExactlyOnceDelivery: true,
	})
	p := c.openStream(t, subA, 0, 0)
	c.publish(t, topicA, "k", "1", "2", "3")
	p.want(t, "1 2 3")
	expect := func(err error, want map[string]string) {
		t.Helper()
		st := status.Convert(err)
		var got map[string]string
		for _, detail := range st.Details() {
			if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetReason() == "EXACTLY_ONCE_ACKID_FAILURE" {
				got = info.GetMetadata()
			}
		}
		if len(want) > 0 && st.Code() != codes.InvalidArgument || len(got) != len(want) {
			t.Fatalf("got %v with %v, want %v", err, got, want)
		}
		for id, words := range want {
			if got[id] != words {
				t.Errorf("%s: got %q, want %q", id, got[id], words)
			}
		}
	}
	const invalid, unordered = "PERMANENT_FAILURE_INVALID_ACK_ID", "TRANSIENT_FAILURE_UNORDERED_ACK_ID"
	id := p.ackIDs("1 2 3")
	expect(c.tryAck(t, subA, id[1]), map[string]string{id[1]: unordered})
	expect(c.tryAck(t, subA, id[2], id[0], "nonsense"), map[string]string{id[2]: unordered, "nonsense": invalid})
	expect(c.tryAck(t, subA, id[0]), map[string]string{id[0]: invalid}) // it is done
	c.deadline(t, subA, 1, id[1])
	p.want(t, "2 3")
	expect(c.tryAck(t, subA, id[1]), map[string]string{id[1]: invalid}) // the deadline has passed
	_, err := c.ModifyAckDeadline(testContext(t), &pb.ModifyAckDeadlineRequest{
		Subscription: subA, AckIds: id[1:2], AckDeadlineSeconds: 10,
	})
	expect(err, map[string]string{id[1]: invalid})
	expect(c.tryAck(t, subA, p.ackIDs("3 2")...), nil)
	p.ping(t)
	if stats := server.Stats(); stats.Waiting != 0 {
		t.Errorf("%d messages wait", stats.Waiting)
	}
}

// TestWhatABrokenStreamDidNotSend comes at once on another one.
func TestWhatABrokenStreamDidNotSend(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
	c.publish(t, topicA, "k", "1", "2", "3")
	inject(t, server, pubsubemulator.Fault{
		Kind: "error", Code: "UNAVAILABLE", Method: "StreamingPull", AfterMessages: 1, Count: 1,
	})
	stream, err := c.StreamingPull(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	first := &puller{stream, map[string]string{}}
	first.send(t, &pb.StreamingPullRequest{Subscription: subA, StreamAckDeadlineSeconds: 600})
	first.want(t, "1")
	if _, err := first.Recv(); status.Code(err) != codes.Unavailable {
		t.Fatalf("the stream ended with %v", err)
	}
	if err := c.tryAck(t, subA, first.ackIDs("1")...); err != nil {
		t.Fatal(err)
	}
	texts, _ := c.drain(t, subA, 2)
	expectEqual(t, "behind the broken stream", texts, []string{"2", "3"})
}

func TestADetachedSubscription(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, t.TempDir()))
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	c.publish(t, topicA, "", "1")
	if _, err := c.DetachSubscription(testContext(t), &pb.DetachSubscriptionRequest{Subscription: subA}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Pull(testContext(t), &pb.PullRequest{Subscription: subA, MaxMessages: 1})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a pull got %v", err)
	}
	got, err := c.GetSubscription(testContext(t), &pb.GetSubscriptionRequest{Subscription: subA})
	if err != nil || !got.GetDetached() {
		t.Errorf("it reads %v, %v", got, err)
	}
}
