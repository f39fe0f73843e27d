package natsjetstream_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
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
		conn, err := nats.Connect("tls://nats.example.com:4222", nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		compliance, err := consumer.New(consumer.Config{Name: "compliance"}, consumer.On(LicenseStatusChanged, notify))
		if err != nil {
			return fmt.Errorf("make the consumer: %w", err)
		}
		// The streams EVENTS and DEAD are there already, the second one with the subjects dead.>.
		if _, err := js.CreateOrUpdateConsumer(ctx,
			"EVENTS", natsjetstream.PullConsumer(compliance, "events.licenses")); err != nil {
			return fmt.Errorf("make the stream's consumer: %w", err)
		}
		return natsjetstream.Consume(ctx, js, compliance, natsjetstream.ConsumeConfig{
			Stream: "EVENTS", DeadLetters: "dead.compliance",
		})
	}
	_ = worker
}
