package kafka_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/posthaste-dev/posthaste/broker/kafka"
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
		compliance, err := consumer.New(consumer.Config{Name: "compliance"}, consumer.On(LicenseStatusChanged, notify))
		if err != nil {
			return fmt.Errorf("make the consumer: %w", err)
		}
		// The topics licenses and dead.compliance are there already.
		return kafka.Consume(ctx, kafka.Cluster{Brokers: []string{"kafka.example.com:9093"}}, compliance, kafka.ConsumeConfig{
			Topics: []string{"licenses"}, DeadLetters: "dead.compliance",
		})
	}
	_ = worker
}
