package marketplace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/examples/marketplace/brokers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/consumers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/examples/marketplace/process"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
)

// mutantVariable names, in the environment of a worker, what is wrong with the one that stands in for the
// marketplace's.
const mutantVariable = "PROOF_MUTANT"

// What may be wrong with it.
const (
	mutantNone     = "nothing"
	mutantForgets  = "forgets"  // has no inbox
	mutantHurries  = "hurries"  // acknowledges before the effect
	mutantPresumes = "presumes" // marks the event in Redis before the effect
)

// standIn is the worker with a mistake: everything is the marketplace's but for the handler of licences.
func standIn(mutant string) {
	process.Main("worker", func(ctx context.Context, logger *slog.Logger) error {
		values, err := settings.Load(nil, os.Environ(), settings.NeedsBroker, settings.NeedsInbox)
		if err != nil {
			return err
		}
		pool, err := pgxpool.New(ctx, settings.WorkerDatabase(values))
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		compliance, err := mutantConsumer(mutant, values, pool, logger)
		if err != nil {
			return err
		}
		orders, err := consumers.OrderReadModel(pool, consumer.Config{Logger: logger})
		if err != nil {
			return err
		}
		broker, err := brokers.Open(ctx, values)
		if err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return broker.Run(ctx, compliance) })
		group.Go(func() error { return broker.Run(ctx, orders) })
		group.Go(func() error {
			return process.Serve(ctx, "worker", settings.WorkerListen.Get(values), http.NotFoundHandler(), logger)
		})
		return errors.Join(group.Wait(), broker.Close())
	})
}

func mutantConsumer(mutant string, values *config.Values, pool *pgxpool.Pool,
	logger *slog.Logger,
) (*consumer.Consumer, error) {
	notify := func(ctx context.Context, event *consumer.Event, license events.LicenseStatusChangedV1) error {
		audience := "store"
		if license.Status == events.LicensePending {
			audience = "admin"
		}
		_, err := pool.Exec(ctx, `INSERT INTO notifications (type, audience, store_id, license_id, status, reason, link, `+
			`event_id)
			VALUES ('compliance', $1, $2, $3, $4, NULLIF($5, ''), $6, $7)`,
			audience, license.StoreID, license.LicenseID, license.Status, license.Reason, "/licenses/"+license.LicenseID,
			event.ID)
		if err != nil {
			return fmt.Errorf("notify: %w", err)
		}
		return nil
	}
	handle := notify
	switch mutant {
	case mutantNone:
		return consumers.Compliance(pool, consumer.Config{Logger: logger})
	case mutantForgets:
	case mutantHurries:
		handle = func(ctx context.Context, event *consumer.Event, license events.LicenseStatusChangedV1) error {
			time.AfterFunc(50*time.Millisecond, func() { _ = notify(context.WithoutCancel(ctx), event, license) })
			return nil
		}
	case mutantPresumes:
		options, err := redis.ParseURL(settings.RedisURL.Get(values).Reveal())
		if err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		guard, err := redisinbox.New(redis.NewClient(options), redisinbox.Config{Prefix: settings.RedisPrefix.Get(values)})
		if err != nil {
			return nil, err
		}
		handle = func(ctx context.Context, event *consumer.Event, license events.LicenseStatusChangedV1) error {
			already, err := guard.CheckAndMarkProcessed(ctx, consumers.ComplianceName, event.ID, 0)
			if err != nil || already {
				return err
			}
			return notify(ctx, event, license)
		}
	}
	others := slices.DeleteFunc(slices.Clone(events.EventTypes), func(eventType string) bool {
		return eventType == events.LicenseStatusChanged.Contract().Type
	})
	return consumer.New(consumer.Config{Name: consumers.ComplianceName, Logger: logger},
		consumer.On(events.LicenseStatusChanged, handle),
		consumer.Ignore(others...))
}
