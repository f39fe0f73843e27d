package otel_test

import (
	"context"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/telemetry/otel"
)

type OrderCreatedV1 struct {
	OrderID string `json:"orderId"`
}

var OrderCreated = outbox.Define[OrderCreatedV1](outbox.Contract{
	Type: "order_created", Aggregate: "order", Topic: "orders",
})

// The application emits through this package instead of outbox. The span in ctx, that of a request for instance,
// becomes the parent of "create orders".
func ExampleEmit() {
	placeOrder := func(ctx context.Context, pool *pgxpool.Pool, orderID string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", orderID); err != nil {
				return err
			}
			_, err := otel.Emit(ctx, tx, OrderCreated.New(orderID, OrderCreatedV1{OrderID: orderID}))
			return err
		})
	}
	_ = placeOrder
}

// The relay's publisher is wrapped. Spans go where the program's provider sends them.
func ExamplePublisher() {
	registry, err := outbox.NewRegistry(OrderCreated)
	if err != nil {
		log.Fatal(err)
	}
	var publisher publish.Publisher // a broker's
	r, err := relay.New(relay.Config{
		Database: os.Getenv("DATABASE_URL"), Registry: registry,
		Publisher: otel.Publisher(publisher, otel.Config{System: "gcp_pubsub"}),
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = r // Run it
}
