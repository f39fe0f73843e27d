// Command worker handles the marketplace's events: it runs the compliance consumer and the read model of orders. Run as
// many as you like.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/examples/marketplace/brokers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/consumers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/process"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
)

func main() { process.Main("worker", run) }

func run(ctx context.Context, logger *slog.Logger) (err error) {
	values, err := settings.Load(os.Args[1:], os.Environ(), settings.NeedsBroker, settings.NeedsInbox)
	if err != nil {
		return err
	}
	settings.WarnInsecure(ctx, values, logger)
	pool, err := pgxpool.New(ctx, settings.WorkerDatabase(values))
	if err != nil {
		return fmt.Errorf("the database's URL: %w", err)
	}
	defer pool.Close()
	metrics := prometheus.NewConsumers()
	common := consumer.Config{Observe: metrics.Observe, Logger: logger}
	compliance, forget, err := newCompliance(ctx, values, pool, common)
	if err != nil {
		return err
	}
	defer forget()
	orders, err := consumers.OrderReadModel(pool, common)
	if err != nil {
		return err
	}
	metrics.Watch(compliance)
	metrics.Watch(orders)
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	retention, err := inbox.NewRetention(db, inbox.RetentionConfig{Keep: settings.InboxTTL.Get(values), Logger: logger})
	if err != nil {
		return err
	}
	broker, err := brokers.Open(ctx, values)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()

	// When one of them ends, so do the others.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return broker.Run(ctx, compliance) })
	group.Go(func() error { return broker.Run(ctx, orders) })
	group.Go(func() error { return retention.Run(ctx) })
	group.Go(func() error {
		return process.Serve(ctx, "worker", settings.WorkerListen.Get(values), probes(pool, broker, metrics), logger)
	})
	return group.Wait() //nolint:wrapcheck // they say who they are
}

// probes answer whether the worker lives, whether it can do its work, and what it has done.
func probes(pool *pgxpool.Pool, broker brokers.Broker, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := pool.Ping(ctx); err != nil {
			http.Error(w, "the database cannot be reached", http.StatusServiceUnavailable)
		} else if err := broker.Ready(ctx); err != nil {
			http.Error(w, "the broker cannot be reached", http.StatusServiceUnavailable)
		}
	})
	return mux
}
