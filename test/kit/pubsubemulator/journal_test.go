package pubsubemulator

import (
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A message that cannot be journalled is neither confirmed nor delivered, and after a change of
// configuration that cannot be journalled nothing is.
func TestUnwritableJournalAcceptsNothing(t *testing.T) {
	t.Parallel()
	server, err := Start(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }() // complains that the files are closed
	const topic, sub = "projects/p/topics/t", "projects/p/subscriptions/s"
	b, ctx := server.broker, t.Context()
	create := func(name string) error {
		_, err := b.CreateTopic(ctx, &pb.Topic{Name: name})
		return err
	}
	if err := create(topic); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateSubscription(ctx, &pb.Subscription{Name: sub, Topic: topic}); err != nil {
		t.Fatal(err)
	}

	if err := b.journal.messages.close(); err != nil {
		t.Fatal(err)
	}
	_, err = b.Publish(ctx, &pb.PublishRequest{Topic: topic, Messages: []*pb.PubsubMessage{{Data: []byte("x")}}})
	if status.Code(err) != codes.Internal {
		t.Errorf("publish got %v", err)
	}
	res, err := b.Pull(ctx, &pb.PullRequest{Subscription: sub, MaxMessages: 1})
	if err != nil || len(res.GetReceivedMessages()) > 0 {
		t.Errorf("pull got %v, %v", res, err)
	}

	if err := b.journal.state.close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{topic + "1", topic + "2"} {
		if err := create(name); status.Code(err) != codes.Internal {
			t.Errorf("create %s got %v", name, err)
		}
	}
	if b.journal.messages.broken == nil || b.journal.state.broken == nil {
		t.Error("the journal would go on without the change that it lacks")
	}
}
