// Command relaying has everything in it in which mistakes can be planted.
package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/schema"
)

func main() {
	ctx := context.Background()
	publisher, err := googlepubsub.New(nil, googlepubsub.Config{})
	fmt.Println(err)
	r, err := relay.New(relay.Config{Publisher: publisher})
	fmt.Println(err, r.Run(ctx))
	pool, err := pgxpool.New(ctx, "")
	fmt.Println(err)
	fmt.Println(relay.NewOperator(pool, "").Redrive(ctx, relay.Action{}))
	fmt.Println(outbox.Statement(""))
	fmt.Println(schema.Outbox.Migrations())
	tx, err := pool.Begin(ctx)
	fmt.Println(err)
	fmt.Println(inbox.First(ctx, tx, "", outbox.ID{}))
	guard, err := redisinbox.New(nil, redisinbox.Config{})
	fmt.Println(err)
	fmt.Println(guard.ForTenant("").Do(ctx, "", outbox.ID{}, nil))
}
