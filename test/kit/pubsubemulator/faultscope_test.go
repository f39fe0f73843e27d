package pubsubemulator_test

import (
	"context"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func TestFaultOfAKeyAndOfAMessage(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	inject(t, server,
		pubsubemulator.Fault{Kind: "error", Code: "ABORTED", Key: "bad", RetryAfterMilliseconds: 1500},
		pubsubemulator.Fault{Kind: "error", Code: "INTERNAL", Attribute: "event-id=7"})
	for name, test := range map[string]struct {
		messages []*pb.PubsubMessage
		want     codes.Code
	}{
		"no key":    {[]*pb.PubsubMessage{{Data: []byte("x")}}, codes.OK},
		"other key": {[]*pb.PubsubMessage{{Data: []byte("x"), OrderingKey: "good"}}, codes.OK},
		"the key":   {[]*pb.PubsubMessage{{Data: []byte("x"), OrderingKey: "bad"}}, codes.Aborted},
		"other value": {
			[]*pb.PubsubMessage{{Data: []byte("x"), Attributes: map[string]string{"event-id": "70"}}}, codes.OK,
		},
		"the second message": {[]*pb.PubsubMessage{
			{Data: []byte("x")}, {Data: []byte("x"), Attributes: map[string]string{"event-id": "7"}},
		}, codes.Internal},
	} {
		_, err := c.Publish(testContext(t), &pb.PublishRequest{Topic: topicA, Messages: test.messages})
		if status.Code(err) != test.want {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		details := status.Convert(err).Details()
		if test.want != codes.Aborted {
			if len(details) > 0 {
				t.Errorf("%s: the error has details: %v", name, details)
			}
			continue
		}
		retry, ok := details[0].(*errdetails.RetryInfo)
		if !ok || retry.GetRetryDelay().AsDuration() != 1500*time.Millisecond {
			t.Errorf("%s: the error's details are %v", name, details)
		}
	}
}

func TestLatencyOfEveryCall(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	inject(t, server, pubsubemulator.Fault{Kind: "delay", Method: pubsubemulator.AnyMethod, Milliseconds: 30})
	began := time.Now()
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	c.publish(t, topicA, "", "x")
	if took := time.Since(began); took < 90*time.Millisecond {
		t.Errorf("three calls took %s", took)
	}
	receive(t, newClient(t, server), subA, 1)
	if fired := server.Faults()[0].Fired; fired < 5 { // these three, the stream and the acknowledgement
		t.Errorf("%d calls were delayed", fired)
	}
}

// TestALateCall: the caller has gone and does not know what became of its message, which comes nevertheless, behind the
// one of a later call.
func TestALateCall(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]int{"released": 0, "by itself": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := start(t, dir)
			c := dial(t, server)
			c.createTopics(t, topicA)
			c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
			inject(t, server, pubsubemulator.Fault{Kind: pubsubemulator.KindLate, Milliseconds: after, Count: 2})
			for i, text := range []string{"1", "2"} {
				ctx, cancel := context.WithCancel(testContext(t))
				defer cancel()
				answer := make(chan codes.Code, 1)
				go func() { answer <- c.tryPublish(ctx, topicA, text) }()
				eventually.True(t, "it is there", func() bool { return server.Stats().Faulted["late"] == i+1 })
				cancel()
				if got := <-answer; got != codes.Canceled {
					t.Fatalf("the publisher that went got %v", got)
				}
			}
			want := 2
			if after == 0 {
				eventually.True(t, "both are held", func() bool { return server.Stats().Held == 2 })
				if got := server.Stats().Accepted; got != 0 {
					t.Errorf("%d messages are accepted before anybody released them", got)
				}
				c.publish(t, topicA, "", "3")
				if released := server.Release(); released != 2 {
					t.Errorf("%d calls were released", released)
				}
				want = 3
			}
			eventually.True(t, "they are accepted", func() bool { return int(server.Stats().Accepted) == want })
			var texts []string
			for _, m := range journal(t, dir) {
				texts = append(texts, string(m.Data))
			}
			if after == 0 {
				expectEqual(t, "journal", texts, []string{"3", "1", "2"})
			}
			if released := server.Release(); released != 0 {
				t.Errorf("%d calls were still held", released)
			}
		})
	}
}

// TestReleaseWhileTheCallerWaits: then it is nothing but a long call.
func TestReleaseWhileTheCallerWaits(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	inject(t, server, pubsubemulator.Fault{Kind: pubsubemulator.KindLate, Count: 1})
	answer := make(chan codes.Code, 1)
	go func() { answer <- c.tryPublish(testContext(t), topicA, "x") }()
	eventually.True(t, "it is held", func() bool { return server.Stats().Held == 1 })
	if code, body := call(t, "POST", "http://"+server.FaultAddr()+"/release", ""); body != "{\"released\":1}\n" {
		t.Errorf("release: %d %s", code, body)
	}
	if got := <-answer; got != codes.OK {
		t.Errorf("the publisher got %v", got)
	}
}

// TestStopWithLateCalls: what is held when the emulator stops is never handled.
func TestStopWithLateCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA)
	inject(t, server, pubsubemulator.Fault{Kind: pubsubemulator.KindLate})
	answer := make(chan codes.Code, 1)
	go func() { answer <- c.tryPublish(testContext(t), topicA, "x") }()
	eventually.True(t, "it is held", func() bool { return server.Stats().Held == 1 })
	stop(t, server)
	if got := <-answer; got != codes.Unavailable {
		t.Errorf("the publisher got %v", got)
	}
	if kept := journal(t, dir); len(kept) != 0 {
		t.Errorf("journalled %v", kept)
	}
}

func TestABlackHoledConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	first := dial(t, server)
	first.createTopics(t, topicA)
	inject(t, server, pubsubemulator.Fault{Kind: pubsubemulator.KindBlackHole, EveryConnection: 2, Count: 1})
	second := dial(t, server)
	for _, text := range []string{"lost", "lost too"} { // only the first call meets the fault
		ctx, cancel := context.WithTimeout(testContext(t), time.Second)
		defer cancel()
		if got := second.tryPublish(ctx, topicA, text); got != codes.DeadlineExceeded {
			t.Errorf("a call on the silent connection got %v", got)
		}
	}
	first.publish(t, topicA, "", "others notice nothing")
	if fired := server.Stats().Faulted["black_hole"]; fired != 1 {
		t.Errorf("%d calls met the fault", fired)
	}
	dial(t, server).publish(t, topicA, "", "on a new one")
	if kept := journal(t, dir); len(kept) != 2 {
		t.Errorf("journalled %v", kept)
	}
}

func TestFaultOfOneConnection(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	first := dial(t, server)
	first.createTopics(t, topicA)
	inject(t, server, pubsubemulator.Fault{Kind: "error", Code: "UNAVAILABLE", Connection: 2})
	for i, want := range []codes.Code{codes.OK, codes.Unavailable, codes.OK} {
		c := first
		if i > 0 {
			c = dial(t, server)
		}
		if got := c.tryPublish(testContext(t), topicA, "x"); got != want {
			t.Errorf("connection %d got %v, want %v", i+1, got, want)
		}
	}
}

func TestAStreamBreaksBehindMessages(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	c.publish(t, topicA, "", numbers("", 2)...)
	inject(t, server, pubsubemulator.Fault{
		Kind: "error", Code: "UNAVAILABLE", Method: "StreamingPull", AfterMessages: 2, Count: 1,
	})
	stream, err := c.StreamingPull(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.StreamingPullRequest{Subscription: subA, StreamAckDeadlineSeconds: 600}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res, err := stream.Recv()
		if err != nil || len(res.GetReceivedMessages()) != 1 {
			t.Fatalf("want one message, got %v, %v", res, err)
		}
		c.ack(t, subA, res.GetReceivedMessages()...)
	}
	if res, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("want a broken stream, got %v, %v", res, err)
	}
	c.expectEmpty(t, subA)
}

func TestFaultsThatMeanNothing(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	for _, f := range []pubsubemulator.Fault{
		{Kind: "late", Method: "StreamingPull"},
		{Kind: "late", Code: "ABORTED"},
		{Kind: "late", Milliseconds: -1},
		{Kind: "delay", Milliseconds: 1, Key: "k", Method: "Acknowledge"},
		{Kind: "delay", Milliseconds: 1, Key: "k", Method: pubsubemulator.AnyMethod},
		{Kind: "delay", Milliseconds: 1, RetryAfterMilliseconds: 1},
		{Kind: "error", Code: "ABORTED", Attribute: "name"},
		{Kind: "error", Code: "ABORTED", AfterMessages: 1},
		{Kind: "delay", Milliseconds: 1, Method: "StreamingPull", AfterMessages: 1},
		{Kind: "error", Code: "ABORTED", Connection: -1},
	} {
		if err := server.Inject(f); err == nil {
			t.Errorf("%+v was accepted", f)
		}
	}
}
