// Command setup makes what the marketplace's programs need: the database with its tables, and the topics of the chosen
// broker with what the consumers read them by. Run it again after every update: what is there stays.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/examples/marketplace/brokers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/consumers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/migrations"
	"github.com/posthaste-dev/posthaste/examples/marketplace/process"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
)

func main() { process.Main("setup", run) }

func run(ctx context.Context, logger *slog.Logger) error {
	values, err := settings.Load(os.Args[1:], os.Environ(), settings.NeedsBroker)
	if err != nil {
		return err
	}
	settings.WarnInsecure(ctx, values, logger)
	if err := migrate(ctx, settings.DatabaseURL.Get(values).Reveal(), migrations.Shop); err != nil {
		return err
	}
	if err := migrate(ctx, settings.WorkerDatabase(values), migrations.Worker); err != nil {
		return err
	}
	return prepare(ctx, values)
}

// migrate makes the database if there is none, and its tables.
func migrate(ctx context.Context, url string, up func(context.Context, *sql.DB) error) error {
	target, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("the database's URL: %w", err)
	}
	if err := create(ctx, target.Copy()); err != nil {
		return err
	}
	db := stdlib.OpenDB(*target)
	defer func() { _ = db.Close() }()
	return up(ctx, db)
}

// create makes the database if there is none, from the one that every server has. It looks first: where databases are
// rented, as on Heroku, theirs is there already, and nobody may make another.
func create(ctx context.Context, target *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, target)
	if err == nil {
		return conn.Close(ctx) //nolint:wrapcheck // it was there, and that is all that was asked
	}
	if missing := (*pgconn.PgError)(nil); !errors.As(err, &missing) || missing.Code != "3D000" { // invalid_catalog_name
		return fmt.Errorf("connect: %w", err)
	}
	name := pgx.Identifier{target.Database}.Sanitize()
	target.Database = "postgres"
	if conn, err = pgx.ConnectConfig(ctx, target); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	// Another setup that runs at this moment may have made it: the server's own index tells.
	if there := (*pgconn.PgError)(nil); errors.As(err, &there) && (there.Code == "42P04" || there.Code == "23505") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return nil
}

// prepare makes the topics, and a subscription for each consumer. It runs no consumer.
func prepare(ctx context.Context, values *config.Values) error {
	pool, err := pgxpool.New(ctx, settings.WorkerDatabase(values))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer pool.Close()
	compliance, err := consumers.Compliance(pool, consumer.Config{})
	if err != nil {
		return err
	}
	orders, err := consumers.OrderReadModel(pool, consumer.Config{})
	if err != nil {
		return err
	}
	broker, err := brokers.Open(ctx, values)
	if err != nil {
		return err
	}
	return errors.Join(broker.Prepare(ctx, compliance, orders), broker.Close())
}
