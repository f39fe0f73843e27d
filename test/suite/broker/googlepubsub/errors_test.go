package googlepubsub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func classOf(err error) string {
	var (
		terminal *publish.TerminalError
		rejected *publish.RejectedError
		topicErr *publish.TopicError
	)
	switch {
	case err == nil:
		return "nil"
	case errors.As(err, &terminal):
		return terminal.Reason
	case errors.As(err, &rejected):
		return "retryable"
	case errors.As(err, &topicErr):
		return "topic"
	case errors.Is(err, publish.ErrNotSent):
		return "not sent"
	default:
		return "unknown"
	}
}

// Every code, over the wire, tells the relay what it should, and at once: the library retries some of them.
func TestErrorsByCode(t *testing.T) {
	t.Parallel()
	want := map[codes.Code]string{
		codes.NotFound: "topic", codes.Unauthenticated: "topic", codes.PermissionDenied: "topic",
		codes.ResourceExhausted: "topic", codes.Unavailable: "topic", codes.FailedPrecondition: "topic",
		codes.Unimplemented:    "topic",
		codes.InvalidArgument:  "retryable",
		codes.DeadlineExceeded: "topic", codes.Canceled: "topic", codes.Aborted: "topic", codes.Internal: "topic",
		codes.Unknown: "topic", codes.AlreadyExists: "unknown", codes.OutOfRange: "unknown", codes.DataLoss: "unknown",
	}
	names := map[codes.Code]string{
		codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
		codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
		codes.NotFound:         "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
		codes.PermissionDenied:  "PERMISSION_DENIED",
		codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.FailedPrecondition: "FAILED_PRECONDITION",
		codes.Aborted:    "ABORTED",
		codes.OutOfRange: "OUT_OF_RANGE", codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL",
		codes.Unavailable: "UNAVAILABLE",
		codes.DataLoss:    "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
	}
	w := newEnv(t, googlepubsub.PublisherConfig{})
	var acknowledged []*publish.Message
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		calls := 1
		if code == codes.InvalidArgument {
			calls = 2 // the message gets a request of its own before it is blamed
		}
		w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindError, Code: names[code], Count: calls})
		m := newMessage(code.String(), int64(code))
		err := w.publisher.Publish(testContext(t), m)
		if got := classOf(err); got != want[code] {
			t.Errorf("%v: class %s, want %s: %v", code, got, want[code], err)
		}
		if err != nil && !strings.Contains(err.Error(), names[code]) {
			t.Errorf("%v: the error does not say so: %v", code, err)
		}
		for _, f := range w.server.Faults() {
			if f.Fired != f.Count {
				t.Errorf("%v: %d calls failed, want %d", code, f.Fired, f.Count)
			}
		}
		w.server.ClearFaults()
		// The message was not to blame for good: sent again, it passes, and the key is usable.
		if err := w.publisher.Publish(testContext(t), m); err != nil {
			t.Errorf("%v: sent again: %v", code, err)
		}
		acknowledged = append(acknowledged, m)
	}
	singles := make([][]*publish.Message, len(acknowledged))
	for i, m := range acknowledged {
		singles[i] = []*publish.Message{m}
	}
	if copies := w.expectHistory(t, singles...); copies > 0 {
		t.Errorf("%d copies: the library retried by itself", copies)
	}
}

func TestQuotaSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	spent, err := status.New(codes.ResourceExhausted,
		"quota").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	middle := &middleman{answer: spent.Err()}
	w := newEnv(t, googlepubsub.PublisherConfig{}, middle.dialOption())
	m := newMessage("1", 1)
	middle.reject(m)
	var topicErr *publish.TopicError
	if err := w.publisher.Publish(testContext(t), m); !errors.As(err, &topicErr) || topicErr.RetryAfter != 7*time.Second {
		t.Errorf("error is %v with %+v", err, topicErr)
	}
}

func TestTopicThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	for _, topic := range []string{
		"missing", "", "ab", "1abc", "a b c", "projects/p/topics/", "projects/p/subscriptions/orders", "x/orders",
	} {
		m := newMessage("1", 1)
		m.Topic = topic
		if err := w.publisher.Publish(testContext(t), m); classOf(err) != "topic" {
			t.Errorf("topic %q: %v", topic, err)
		}
	}
	late := newMessage("1", 2)
	late.Topic = "missing"
	w.createTopic(t, "missing")
	if err := w.publisher.Publish(testContext(t), late); err != nil {
		t.Errorf("after the topic was made: %v", err)
	}
	w.expectHistory(t, []*publish.Message{late})
}

func TestAttributeLimits(t *testing.T) {
	t.Parallel()
	attributes := func(n, name, value int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("%0*d", name, i)] = strings.Repeat("v", value)
		}
		return all
	}
	w := newEnv(t, googlepubsub.PublisherConfig{})
	for _, c := range []struct {
		attributes map[string]string
		want       string
	}{
		{attributes(100, 4, 1), "nil"},
		{attributes(101, 4, 1), "rejected"},
		{attributes(1, 256, 1), "nil"},
		{attributes(1, 257, 1), "rejected"},
		{attributes(1, 4, 1024), "nil"},
		{attributes(1, 4, 1025), "rejected"},
		{map[string]string{"": "v"}, "rejected"},
		{map[string]string{"a": "\xff"}, "rejected"},
		{map[string]string{"\xff": "a"}, "rejected"},
	} {
		accepted := w.server.Stats().Accepted
		m := newMessage("1", 1)
		m.Attributes = c.attributes
		if err := w.publisher.Publish(testContext(t), m); classOf(err) != c.want {
			t.Errorf("%d attributes: class %s, want %s: %v", len(c.attributes), classOf(err), c.want, err)
		}
		if sent := w.server.Stats().Accepted > accepted; sent != (c.want == "nil") {
			t.Errorf("%s, and sent is %v", c.want, sent)
		}
	}
}

// sizeOf is what the library counts of a request with one message.
func sizeOf(m *publish.Message) int {
	name := topicName(m.Topic)
	return proto.Size(&pb.PubsubMessage{Data: m.Body, Attributes: m.Attributes, OrderingKey: m.Key}) + 5 + 1 +
		protowire.SizeBytes(len(name))
}

func TestSizeLimit(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{Timeout: eventually.Patience})
	const limit = 10_000_000
	for over, want := range map[int]string{-1: "nil", 0: "nil", 1: "too_large", 5_000_000: "too_large"} {
		m := newMessage(fmt.Sprint(over), 1)
		m.Body = append(m.Body, make([]byte, limit+over-1000)...)
		m.Body = append(m.Body, make([]byte, limit+over-sizeOf(m))...)
		if size := sizeOf(m); size != limit+over {
			t.Fatalf("the test's message has %d bytes", size)
		}
		accepted := w.server.Stats().Accepted
		err := w.publisher.Publish(testContext(t), m)
		if classOf(err) != want {
			t.Errorf("limit%+d: class %s, want %s: %v", over, classOf(err), want, err)
		}
		if sent := w.server.Stats().Accepted > accepted; sent != (want == "nil") {
			t.Errorf("limit%+d: sent is %v", over, sent)
		}
	}
}
