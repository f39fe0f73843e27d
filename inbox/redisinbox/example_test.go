package redisinbox_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

// message stands for what a broker's client hands to a consumer.
type message interface {
	EventID() outbox.ID
	Acknowledge()
	RedeliverAfter(time.Duration)
}

func Example() {
	ctx, logger := context.Background(), slog.New(slog.NewJSONHandler(os.Stderr, nil))
	client := redis.NewClient(&redis.Options{
		Addr:                  "redis.example.com:6379",
		TLSConfig:             &tls.Config{MinVersion: tls.VersionTLS12},
		ContextTimeoutEnabled: true,
	})
	defer client.Close()
	guard, err := redisinbox.New(client, redisinbox.Config{BrokerRetention: 7 * 24 * time.Hour, OutboxRetention: 720 * time.Hour})
	if err != nil {
		logger.ErrorContext(ctx, "there is no inbox", "error", err)
		return
	}
	findings, err := guard.Check(ctx)
	if err != nil {
		logger.WarnContext(ctx, "the inbox was not checked", "error", err)
	}
	for _, finding := range findings {
		logger.Log(ctx, finding.Level, "the check of the inbox", "code", finding.Code, "finding", finding.Text)
	}
}

func ExampleGuard_Do() {
	var guard *redisinbox.Guard // from redisinbox.New
	var sendMail func(context.Context) error

	receive := func(ctx context.Context, message message) {
		_, err := guard.Do(ctx, "mailer", message.EventID(), sendMail)
		if redisinbox.Handled(err) {
			message.Acknowledge()
			return
		}
		delay := 10 * time.Second
		if held, ok := errors.AsType[*redisinbox.HeldError](err); ok {
			delay = held.RetryAfter
		}
		message.RedeliverAfter(delay)
	}
	_ = receive
}
