package relay_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
)

type OrderCreatedV1 struct {
	OrderID string `json:"orderId"`
}

var OrderCreated = outbox.Define[OrderCreatedV1](outbox.Contract{Type: "order_created", Aggregate: "order", Topic: "orders"})

// A whole relay. A broker's publisher takes the place of the function.
func Example() {
	registry, err := outbox.NewRegistry(OrderCreated)
	if err != nil {
		log.Fatal(err)
	}
	r, err := relay.New(relay.Config{
		Database: os.Getenv("DATABASE_URL"),
		Registry: registry,
		Publisher: relay.Func(func(_ context.Context, message *relay.Message) error {
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

// Dead events are sent again once what was wrong with them is repaired. The id makes the decision one: sent
// twice, it is done once.
func ExampleOperator_Redrive() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	dead, err := outbox.ParseID("0198c2a4-7c00-7000-8000-000000000001")
	if err != nil {
		log.Print(err)
		return
	}
	decision := relay.Action{ID: outbox.NewID(), Actor: "ada@example.com", Reason: "the billing topic accepts 2 MB now"}
	results, err := relay.NewOperator(pool, "public").Redrive(ctx, decision, dead)
	if err != nil {
		log.Print(err)
		return
	}
	for _, result := range results {
		fmt.Println(result.Event, result.Outcome, result.Was)
	}
}

// What died of one cause since yesterday and nobody has decided about, page by page.
func ExampleOperator_DeadLetters() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	operator := relay.NewOperator(pool, "public")
	filter := relay.DeadLetterFilter{Topic: "orders", Reason: "max_attempts", Since: time.Now().Add(-24 * time.Hour), Unresolved: true}
	for more := true; more; {
		page, err := operator.DeadLetters(ctx, filter)
		if err != nil {
			log.Print(err)
			return
		}
		for _, letter := range page.Letters {
			fmt.Println(letter.FailedAt, letter.Event, letter.Type, letter.AggregateID, letter.Detail)
		}
		filter.After, more = page.Next, page.Next != ""
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
	// the Publisher is missing: give a broker's publisher, or a relay.Func
}
