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
	harness := middle.harness(t, addr)
	harness.MakeTopic = func(ctx context.Context, topic string) error {
		if !strings.HasSuffix(topic, "-not") {
			// A case of its own gets a journal of its own: messages of ten megabytes are slow to read.
			w.restartEmpty(t)
		}
		_, err := w.client.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: topicName(topic)})
		return err
	}
	harness.RemoveTopic = func(ctx context.Context, topic string) error {
		return w.client.TopicAdminClient.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: topicName(topic)})
	}
	harness.Arrived = func(_ context.Context, topic string) ([]relaytest.Arrived, error) {
		eventually.True(t, "nothing is on its way to the broker", middle.quiet)
		return arrived(w.dir, topic)
	}
	harness.Stop = func(context.Context, string) (func(context.Context) error, error) {
		end := func(context.Context) error {
			server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: w.dir, Addr: addr})
			if err == nil {
				w.server = server
			}
			return err
		}
		return end, w.server.Close()
	}
	harness.Hang = asFault(middle.hang)
	harness.DenyAuth = fault(pubsubemulator.Fault{Kind: pubsubemulator.KindError, Code: "UNAUTHENTICATED"})
	relaytest.TestPublisher(t, harness)
}

// harness is what holds for every broker that the middleman stands before.
func (m *middleman) harness(t *testing.T, addr string) relaytest.Harness {
	t.Helper()
	// Ten megabytes take their time on a busy machine. Who does not heed its context returns after the library's timeout,
	// which is longer than the grace.
	const deadline, grace = eventually.Patience, time.Minute
	return relaytest.Harness{
		Open: func(context.Context) (publish.Publisher, func() error, error) {
			client := newClient(t, addr, m.dialOption())
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
		MaxBytes: 10_000_000,
		Size:     sizeOf,
		Deadline: deadline, Grace: grace, Recovery: eventually.Patience,
		Slow: asFault(m.hold), LoseAck: asFault(m.loseAnswers),
		RejectMessage: func(_ context.Context, _ string, id outbox.ID) (func(context.Context) error, error) {
			m.rejectID(id.String())
			return func(context.Context) error { m.rejectID(""); return nil }, nil
		},
		Cannot: map[relaytest.Ability]string{
			relaytest.Dedupe: "Pub/Sub gives every accepted message an id of its own and looks at no id of ours",
		},
	}
}

// asFault is what the middleman does until it is told to end it.
func asFault(begin func() (end func())) relaytest.Fault {
	return func(context.Context, string) (func(context.Context) error, error) {
		end := begin()
		return func(context.Context) error { end(); return nil }, nil
	}
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
