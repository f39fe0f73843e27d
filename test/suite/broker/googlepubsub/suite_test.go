package googlepubsub_test

import (
	"context"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// The contract of all publishers.
func TestContract(t *testing.T) {
	t.Parallel()
	// Ten megabytes take their time on a busy machine. Who does not heed its context returns after the library's timeout,
	// which is longer than the grace.
	const deadline, grace = eventually.Patience, time.Minute
	middle := &middleman{}
	w := newEnv(t, googlepubsub.PublisherConfig{})
	addr := w.server.Addr()
	t.Cleanup(func() { _ = w.server.Close() })
	fault := func(f pubsubemulator.Fault) relaytest.Fault {
		return func(_ context.Context, topic string) (func(context.Context) error, error) {
			f.Topic = topicName(topic)
			end := func(context.Context) error { w.server.ClearFaults(); return nil }
			return end, w.server.Inject(f)
		}
	}
	relaytest.TestPublisher(t, relaytest.Harness{
		Open: func(context.Context) (publish.Publisher, func() error, error) {
			client := newClient(t, addr, middle.dialOption())
			publisher, err := googlepubsub.NewPublisher(client, googlepubsub.PublisherConfig{Timeout: deadline - 10*time.Second})
			if err != nil {
				return nil, nil, err
			}
			return publisher, func() error {
				if err := publisher.Close(); err != nil {
					return err
				}
				return client.Close()
			}, nil
		},
		MakeTopic: func(ctx context.Context, topic string) error {
			if !strings.HasSuffix(topic, "-not") {
				// A case of its own gets a journal of its own: messages of ten megabytes are slow to read.
				w.restartEmpty(t)
			}
			_, err := w.client.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: topicName(topic)})
			return err
		},
		RemoveTopic: func(ctx context.Context, topic string) error {
			return w.client.TopicAdminClient.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: topicName(topic)})
		},
		Arrived: func(_ context.Context, topic string) ([]relaytest.Arrived, error) {
			eventually.True(t, "nothing is on its way to the broker", middle.quiet)
			return arrived(w.dir, topic)
		},
		MaxBytes: 10_000_000,
		Size:     sizeOf,
		Deadline: deadline, Grace: grace, Recovery: eventually.Patience,
		Stop: func(context.Context, string) (func(context.Context) error, error) {
			end := func(context.Context) error {
				server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: w.dir, Addr: addr})
				if err == nil {
					w.server = server
				}
				return err
			}
			return end, w.server.Close()
		},
		Slow: func(context.Context, string) (func(context.Context) error, error) {
			end := middle.hold()
			return func(context.Context) error { end(); return nil }, nil
		},
		Hang: func(context.Context, string) (func(context.Context) error, error) {
			end := middle.hang()
			return func(context.Context) error { end(); return nil }, nil
		},
		LoseAck: func(context.Context, string) (func(context.Context) error, error) {
			end := middle.loseAnswers()
			return func(context.Context) error { end(); return nil }, nil
		},
		DenyAuth: fault(pubsubemulator.Fault{Kind: pubsubemulator.KindError, Code: "UNAUTHENTICATED"}),
		RejectMessage: func(_ context.Context, _ string, id outbox.ID) (func(context.Context) error, error) {
			middle.rejectID(id.String())
			return func(context.Context) error { middle.rejectID(""); return nil }, nil
		},
		Cannot: map[relaytest.Ability]string{
			relaytest.Dedupe: "Pub/Sub gives every accepted message an id of its own and looks at no id of ours",
		},
	})
}

func arrived(dir, topic string) ([]relaytest.Arrived, error) {
	messages, err := pubsubemulator.ReadMessages(dir)
	var all []relaytest.Arrived
	for _, m := range messages {
		if m.Topic == topicName(topic) {
			all = append(all, relaytest.Arrived{Body: m.Data, Attributes: m.Attributes, Key: m.OrderingKey})
		}
	}
	return all, err
}

func (w *env) restartEmpty(t *testing.T) {
	t.Helper()
	addr := w.server.Addr()
	if err := w.server.Close(); err != nil {
		t.Fatal(err)
	}
	w.dir = t.TempDir()
	w.server = startEmulator(t, w.dir, addr)
}
