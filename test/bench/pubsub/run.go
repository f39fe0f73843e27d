package pubsub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

const (
	project, topic = "p", "orders"
	// connections is what a daemon has by default.
	connections = 4
)

// Plan is what a run measures.
type Plan struct {
	RoundTrip time.Duration
	InFlight  int           // aggregates, each with one event under way, as many as the relay has by default
	Patience  time.Duration // how long requests may take until all are before the server; less than a request's time
	Blocks    int           // of each of the two, in turns
	Block     time.Duration // how long one takes
	Timed     bool          // the rate decides
	Config    googlepubsub.PublisherConfig
}

// Full is a plan whose rates decide.
func Full() Plan {
	return Plan{
		RoundTrip: 30 * time.Millisecond, InFlight: 256, Patience: 6 * time.Second, Blocks: 5, Block: 3 * time.Second,
		Timed: true,
	}
}

// Short is one in which only what is counted decides.
func Short() Plan {
	plan := Full()
	plan.Blocks, plan.Block, plan.Timed = 2, 2*time.Second, false
	return plan
}

// Run measures.
func Run(ctx context.Context, plan Plan) (report *Report, err error) {
	server, err := startServer(plan.RoundTrip)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	client, err := pubsub.NewClient(ctx, project, option.WithEndpoint(server.address), option.WithoutAuthentication(),
		option.WithGRPCConnectionPool(connections),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	publisher, err := googlepubsub.NewPublisher(client, plan.Config)
	if err != nil {
		return nil, fmt.Errorf("make the publisher: %w", err)
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	report = &Report{Plan: plan}
	began := time.Now()
	for range plan.Blocks {
		for _, each := range []struct {
			into *[]Block
			send func(context.Context, string, int64) error
		}{
			{&report.Bare, func(ctx context.Context, key string, _ int64) error { return bare(ctx, client, key) }},
			{&report.Published, func(ctx context.Context, key string, seq int64) error {
				return published(ctx, publisher, key, seq)
			}},
		} {
			block, err := measure(ctx, plan, server, each.send)
			if err != nil {
				return nil, err
			}
			*each.into = append(*each.into, block)
		}
	}
	report.Took = time.Since(began)
	return report, nil
}

// measure has every aggregate send one event, to see how many are under way at the same time, and then one event after
// the other for the time of a block.
func measure(ctx context.Context, plan Plan, server *server,
	send func(ctx context.Context, key string, seq int64) error,
) (Block, error) {
	atOnce := server.gather(plan.InFlight, plan.Patience)
	_, _, err := sendAll(ctx, plan.InFlight, 0, send)
	block := Block{AtOnce: atOnce()}
	if err != nil {
		return block, err
	}
	sent, took, err := sendAll(ctx, plan.InFlight, plan.Block, send)
	block.Rate = float64(sent) / took.Seconds()
	return block, err
}

// sendAll has every aggregate send events for so long, and one at least.
func sendAll(ctx context.Context, aggregates int, long time.Duration,
	send func(ctx context.Context, key string, seq int64) error,
) (sent int64, took time.Duration, err error) {
	var (
		count atomic.Int64
		group sync.WaitGroup
		errs  = make([]error, aggregates)
	)
	began := time.Now()
	for i := range aggregates {
		group.Go(func() {
			for seq := int64(1); errs[i] == nil && (seq == 1 || time.Since(began) < long); seq++ {
				errs[i] = send(ctx, fmt.Sprint("order/", i), seq)
				count.Add(1)
			}
		})
	}
	group.Wait()
	return count.Load(), time.Since(began), errors.Join(errs...)
}

var body = []byte(`{"version":1,"data":{"status":"paid","amount":"12.50"}}`)

func bare(ctx context.Context, client *pubsub.Client, key string) error {
	_, err := client.TopicAdminClient.Publish(ctx, &pb.PublishRequest{
		Topic:    "projects/" + project + "/topics/" + topic,
		Messages: []*pb.PubsubMessage{{Data: body, OrderingKey: key}},
	})
	if err != nil {
		return fmt.Errorf("a bare request: %w", err)
	}
	return nil
}

func published(ctx context.Context, publisher *googlepubsub.Publisher, key string, seq int64) error {
	return publisher.Publish(ctx, &publish.Message{ID: outbox.NewID(), Topic: topic, Key: key, Seq: seq, Body: body})
}
