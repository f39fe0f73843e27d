package googlepubsub_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

type LicenseStatus struct {
	LicenseID string `json:"licenseId"`
	Status    string `json:"status"`
}

var LicenseStatusChanged = outbox.Define[LicenseStatus](outbox.Contract{
	Type: "license_status_changed", Version: 1, Aggregate: "license", Topic: "licenses",
})

// notify writes the notice in a transaction of its own, with inbox.First at its beginning.
func notify(context.Context, *consumer.Event, LicenseStatus) error { return nil }

// A worker that handles events until it is interrupted.
func Example() {
	worker := func() error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		soon := backoff.DefaultConfig
		soon.MaxDelay = 10 * time.Second
		client, err := pubsub.NewClient(ctx,
			"my-project", option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon})))
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer client.Close()
		compliance, err := consumer.New(consumer.Config{Name: "compliance"}, consumer.On(LicenseStatusChanged, notify))
		if err != nil {
			return fmt.Errorf("make the consumer: %w", err)
		}
		// The subscription is there already, with message ordering, a retry policy and a dead-letter policy.
		return googlepubsub.Consume(ctx, client, compliance, googlepubsub.ConsumeConfig{Subscription: "compliance"})
	}
	_ = worker
}
