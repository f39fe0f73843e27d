package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/examples/marketplace/consumers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
)

// newCompliance makes the compliance consumer with the chosen memory. The function is for when it is not needed any
// more.
func newCompliance(ctx context.Context, values *config.Values, pool *pgxpool.Pool,
	common consumer.Config,
) (*consumer.Consumer, func(), error) {
	if settings.InboxStore.Get(values) != "redis" {
		compliance, err := consumers.Compliance(pool, common)
		return compliance, func() {}, err
	}
	options, err := redis.ParseURL(settings.RedisURL.Get(values).Reveal())
	if err != nil {
		return nil, nil, errors.New("redis.url is not a URL of Redis") // the error quotes it
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	forget := func() { _ = client.Close() }
	guard, err := redisinbox.New(client, redisinbox.Config{
		Prefix: settings.RedisPrefix.Get(values), Hold: settings.RedisHold.Get(values), Keep: settings.InboxTTL.Get(values),
		Logger:          common.Logger,
		BrokerRetention: 168 * time.Hour, OutboxRetention: 720 * time.Hour, // as they are unless somebody has set them
	})
	if err != nil {
		forget()
		return nil, nil, err
	}
	findings, err := guard.Check(ctx)
	if err != nil {
		common.Logger.WarnContext(ctx, "redis could not be checked", slog.String("error", err.Error()))
	}
	for _, finding := range findings {
		common.Logger.Log(ctx, finding.Level, "the check of redis", slog.String("code", finding.Code),
			slog.String("finding", finding.Text))
	}
	compliance, err := consumers.ComplianceWithRedis(pool, guard, common)
	return compliance, forget, err
}
