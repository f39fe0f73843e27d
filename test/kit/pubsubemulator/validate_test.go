package pubsubemulator_test

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/iam/apiv1/iampb"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func TestWhatThePublishersMayNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, start(t, dir))
	c.createTopics(t, topicA)
	one := func(m *pb.PubsubMessage) []*pb.PubsubMessage { return []*pb.PubsubMessage{m} }
	with := func(name, value string) []*pb.PubsubMessage {
		return one(&pb.PubsubMessage{Attributes: map[string]string{name: value}})
	}
	some := func(n int) []*pb.PubsubMessage {
		var messages []*pb.PubsubMessage
		for range n {
			messages = append(messages, &pb.PubsubMessage{Data: []byte("x")})
		}
		return messages
	}
	attributes := func(n int) []*pb.PubsubMessage {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint(i)] = ""
		}
		return one(&pb.PubsubMessage{Attributes: all})
	}
	// The topic, and the tags and lengths around what a message has, are of a request too.
	const around = 2 + len(topicA) + 5 + 5
	accepted := 0
	for name, test := range map[string]struct {
		messages []*pb.PubsubMessage
		want     codes.Code
	}{
		"a thousand":         {some(1000), codes.OK},
		"more":               {some(1001), codes.InvalidArgument},
		"empty":              {one(&pb.PubsubMessage{OrderingKey: "k"}), codes.InvalidArgument},
		"attributes":         {attributes(100), codes.OK},
		"too many of them":   {attributes(101), codes.InvalidArgument},
		"long name":          {with(strings.Repeat("n", 256), "v"), codes.OK},
		"too long name":      {with(strings.Repeat("n", 257), "v"), codes.InvalidArgument},
		"long value":         {with("n", strings.Repeat("v", 1024)), codes.OK},
		"too long value":     {with("n", strings.Repeat("v", 1025)), codes.InvalidArgument},
		"no name":            {with("", "v"), codes.InvalidArgument},
		"Google's name":      {with("google", "v"), codes.InvalidArgument},
		"its client's name":  {with("googclient_traceparent", "v"), codes.OK},
		"long key":           {one(&pb.PubsubMessage{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1024)}), codes.OK},
		"ten megabytes":      {one(&pb.PubsubMessage{Data: make([]byte, 10_000_000-around)}), codes.OK},
		"more than they are": {one(&pb.PubsubMessage{Data: make([]byte, 10_000_001-around)}), codes.InvalidArgument},
		"too long key": {
			one(&pb.PubsubMessage{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1025)}), codes.InvalidArgument,
		},
		"two keys": {
			append(one(&pb.PubsubMessage{Data: []byte("x"), OrderingKey: "k"}), some(1)...), codes.FailedPrecondition,
		},
	} {
		_, err := c.Publish(testContext(t), &pb.PublishRequest{Topic: topicA, Messages: test.messages})
		if status.Code(err) != test.want {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		if test.want == codes.OK {
			accepted += len(test.messages)
		}
	}
	if kept := journal(t, dir); len(kept) != accepted {
		t.Errorf("journalled %d messages, want %d", len(kept), accepted)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	dial(t, server).createTopics(t, topicA, topicB)
	inject(t, server,
		pubsubemulator.Fault{Kind: pubsubemulator.KindNoPermission, Topic: topicB, Count: 1},
		pubsubemulator.Fault{Kind: "error", Code: "PERMISSION_DENIED", Method: "TestIamPermissions", Topic: topicB})
	client := newClient(t, server)
	for i, test := range []struct {
		topic string
		want  int
		code  codes.Code
	}{{topicA, 1, codes.OK}, {topicB, 0, codes.OK}, {topicB, 0, codes.PermissionDenied}, {topicA + "-not", 0, codes.OK}} {
		got, err := client.TopicAdminClient.TestIamPermissions(testContext(t), &iampb.TestIamPermissionsRequest{
			Resource: test.topic, Permissions: []string{"pubsub.topics.publish"},
		})
		if len(got.GetPermissions()) != test.want || status.Code(err) != test.code {
			t.Errorf("question %d: got %v, %v", i, got, err)
		}
	}
}

// TestADeletedTopicIsShown at its subscriptions, also when there is a new topic of that name, and after a restart.
func TestADeletedTopicIsShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	if _, err := c.DeleteTopic(testContext(t), &pb.DeleteTopicRequest{Topic: topicA}); err != nil {
		t.Fatal(err)
	}
	c.createTopics(t, topicA)
	for range 2 {
		got, err := c.GetSubscription(testContext(t), &pb.GetSubscriptionRequest{Subscription: subA})
		if err != nil || got.GetTopic() != "_deleted-topic_" {
			t.Errorf("it reads %v, %v", got, err)
		}
		stop(t, server)
		server = start(t, dir)
		c = dial(t, server)
	}
}
