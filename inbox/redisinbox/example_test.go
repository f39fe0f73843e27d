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
	guard, err := redisinbox.New(client, redisinbox.Config{
		BrokerRetention: 7 * 24 * time.Hour, OutboxRetention: 720 * time.Hour,
	})
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

// The one-call form: one SET NX before the effect. It is shorter than [redisinbox.Guard.Do], and it loses events. If
// the process dies after the mark and before the effect, or cannot delete the mark of an effect that failed, every copy
// is taken for handled until the mark expires, and nobody gets to know. A copy that comes while the effect runs is
// acknowledged as well, though the effect may still fail. Do loses none: it holds the event while the handler runs, and
// marks it afterwards.
func ExampleGuard_CheckAndMarkProcessed() {
	var guard *redisinbox.Guard // from redisinbox.New
	var logger *slog.Logger
	var sendMail func(context.Context) error

	receive := func(ctx context.Context, message message) {
		already, err := guard.CheckAndMarkProcessed(ctx, "mailer", message.EventID(), 0) // 0: for as long as Config.Keep
		if err != nil {
			message.RedeliverAfter(10 * time.Second) // nobody knows whether it was handled
			return
		}
		if already {
			message.Acknowledge()
			return
		}
		// From here until the effect is there, a crash loses the event.
		if sendMail(ctx) == nil {
			message.Acknowledge()
			return
		}
		// The context may be what failed, and the mark must go all the same.
		if err := guard.Delete(context.WithoutCancel(ctx), "mailer", message.EventID()); err != nil {
			logger.ErrorContext(ctx, "a failed event is marked as handled: delete its key",
				"event_id", message.EventID(), "error", err)
		}
		message.RedeliverAfter(10 * time.Second)
	}
	_ = receive
}

// Delete takes back a mark after its effect has failed, so that the next delivery is the first again. It removes what
// this guard has marked and nothing else; that there is no mark is no error.
func ExampleGuard_Delete() {
	var guard *redisinbox.Guard // from redisinbox.New
	var sendMail func(context.Context) error

	once := func(ctx context.Context, id outbox.ID) error {
		already, err := guard.CheckAndMarkProcessed(ctx, "mailer", id, 7*24*time.Hour)
		if err != nil || already {
			return err
		}
		if err := sendMail(ctx); err != nil {
			return errors.Join(err, guard.Delete(context.WithoutCancel(ctx), "mailer", id))
		}
		return nil
	}
	_ = once
}
