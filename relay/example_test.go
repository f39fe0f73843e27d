package relay_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

type OrderCreatedV1 struct {
	OrderID string `json:"orderId"`
}

var OrderCreated = outbox.Define[OrderCreatedV1](outbox.Contract{
	Type: "order_created", Aggregate: "order", Topic: "orders",
})

var OrderViewed = outbox.Define[OrderCreatedV1](outbox.Contract{
	Type: "order_viewed", Aggregate: "order", Topic: "orders",
})

// A whole relay. A broker's publisher takes the place of the function.
func Example() {
	registry, err := outbox.NewRegistry(OrderCreated)
	if err != nil {
		log.Fatal(err)
	}
	r, err := relay.New(relay.Config{
		Database: os.Getenv("DATABASE_URL"),
		Registry: registry,
		Publisher: publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
			fmt.Println(message.Topic, message.Key, string(message.Body))
			return nil
		}),
	})
	if err != nil {
		log.Fatal(err) // everything that is wrong, at once
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := r.Run(ctx); err != nil { // returns when ctx ends and what was in flight is settled
		log.Print(err)
	}
}

// Events are handled in the relay's own process, each by the handler of its type, and no broker is needed. The inbox is
// in the database of the effect, so that an event which comes twice has one effect.
func ExampleHandlers() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Print(err)
		return
	}
	defer pool.Close()

	mailer, err := consumer.New(consumer.Config{Name: "mailer"},
		consumer.On(OrderCreated, func(ctx context.Context, event *consumer.Event, order OrderCreatedV1) error {
			return outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
				first, err := inbox.First(ctx, tx, "mailer", event.ID)
				if err != nil {
					return err // tried again later
				}
				if !first {
					return consumer.ErrDuplicate
				}
				_, err = tx.Exec(ctx, "INSERT INTO mails (order_id) VALUES ($1)", order.OrderID)
				return err
			})
		}),
		consumer.Ignore("order_viewed")) // nothing is to be done for it
	if err != nil {
		log.Print(err)
		return
	}

	registry, err := outbox.NewRegistry(OrderCreated, OrderViewed)
	if err != nil {
		log.Print(err)
		return
	}
	r, err := relay.New(relay.Config{
		Database:  os.Getenv("DATABASE_URL"),
		Registry:  registry,
		Publisher: relay.Handlers(mailer),
		Settings:  relay.Settings{Concurrency: 16}, // no more handlers at a time than the pool has connections
	})
	if err != nil {
		log.Print(err) // also when a type of the registry has no handler
		return
	}
	if err := r.Run(ctx); err != nil {
		log.Print(err)
	}
}

// Whatever is wrong is said at once.
func ExampleNew_problems() {
	_, err := relay.New(relay.Config{Settings: relay.Settings{Poll: 20 * time.Second, Deadline: time.Minute}})
	fmt.Println(err)
	// Output:
	// relay: Poll: 20s, must be at least 1 ms and at most a third of the lease (30s)
	// Deadline: 1m0s, must be at least 10 ms and at most a third of the lease (30s)
	// the Database is missing: give the URL of the outbox's database
	// the Registry is missing: make one with outbox.NewRegistry
	// the Publisher is missing: give a broker's publisher, or a publish.PublisherFunc
}
