package emit

import (
	"context"
	"maps"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// brokers are the publishers that we ship, each with a topic of this name.
type brokers struct {
	topic      string
	publishers map[string]publish.Publisher
}

// reachableBrokers starts a Pub/Sub of its own, and uses NATS where it answers.
func reachableBrokers(f *testing.F) *brokers {
	f.Helper()
	b := &brokers{topic: pgtest.NewName("fuzz"), publishers: map[string]publish.Publisher{}}
	b.usePubSub(f)
	url := services.NATS()
	if err := b.useNATS(f, url); err != nil {
		f.Logf("without NATS, because %s does not answer: %v", url, err)
	}
	return b
}

func (b *brokers) usePubSub(f *testing.F) {
	f.Helper()
	server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = server.Close() })
	client, err := pubsub.NewClient(f.Context(), "fuzz", option.WithEndpoint(server.Addr()),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = client.Close() })
	if _, err := client.TopicAdminClient.CreateTopic(f.Context(),
		&pb.Topic{Name: "projects/fuzz/topics/" + b.topic}); err != nil {
		f.Fatal(err)
	}
	publisher, err := googlepubsub.NewPublisher(client, googlepubsub.PublisherConfig{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = publisher.Close() })
	b.publishers["Pub/Sub"] = publisher
}

func (b *brokers) useNATS(f *testing.F, url string) error {
	f.Helper()
	conn, err := natsjetstream.Connect(url, nats.Timeout(eventually.Patience))
	if err != nil {
		return err
	}
	if !conn.IsConnected() {
		conn.Close()
		return nats.ErrNoServers
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{Stream: b.topic})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = publisher.Close() })
	js, err := jetstream.New(conn)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.Context(), eventually.Patience)
	defer cancel()
	// One message is kept: nobody reads them.
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: b.topic, Subjects: []string{b.topic}, Storage: jetstream.MemoryStorage, MaxMsgs: 1,
	})
	if err != nil {
		return err
	}
	f.Cleanup(func() { _ = js.DeleteStream(context.Background(), b.topic) })
	b.publishers["NATS"] = publisher
	return nil
}

// take publishes an event that the library accepted: every broker must take it.
func (b *brokers) take(t *testing.T, event corpus.Given) {
	t.Helper()
	id := outbox.NewID()
	message := &publish.Message{
		ID: id, Topic: b.topic, Key: event.Contract.Aggregate + "/" + event.AggregateID,
		Body: []byte(event.Envelope(id.String())), Seq: 1,
		Attributes: map[string]string{
			"event_id": id.String(), "event_type": event.Contract.Type, "aggregate_type": event.Contract.Aggregate,
			"aggregate_id": event.AggregateID,
			"created_at":   "2026-01-01T00:00:00.000000Z", "outbox_seq": "1", "tenant_id": event.Tenant, "dedupe_key": event.Key,
		},
	}
	maps.Copy(message.Attributes, event.Headers)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	for name, publisher := range b.publishers {
		if err := publisher.Publish(ctx, message); err != nil {
			t.Fatalf("the library accepts it and %s does not: %v", name, err)
		}
	}
}
