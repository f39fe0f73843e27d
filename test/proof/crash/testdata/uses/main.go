// Command uses is a program as a user might write it: it emits, relays, consumes, operates and migrates. A test looks
// into it for what must not be there.
package main

import (
	"context"
	"database/sql"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/schema"
)

func main() {
	ctx := context.Background()
	if err := use(ctx); err != nil {
		os.Exit(1)
	}
}

func use(ctx context.Context) error {
	db, err := sql.Open("none", "")
	if err != nil {
		return err
	}
	if err := schema.Outbox.Up(ctx, db, schema.Options{}); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		return err
	}
	err = outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := inbox.First(ctx, tx, "mailer", outbox.NewID()); err != nil {
			return err
		}
		_, err := outbox.Emit(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	guard, err := redisinbox.New(redis.NewClient(&redis.Options{}), redisinbox.Config{})
	if err != nil {
		return err
	}
	if _, err := guard.Do(ctx, "mailer", outbox.NewID(), func(context.Context) error { return nil }); err != nil {
		return err
	}
	if _, err := guard.CheckAndMarkProcessed(ctx, "mailer", outbox.NewID(), 0); err != nil {
		return err
	}
	if _, err := operator.New(pool, "").Redrive(ctx, operator.Action{}); err != nil {
		return err
	}
	r, err := relay.New(relay.Config{})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}
