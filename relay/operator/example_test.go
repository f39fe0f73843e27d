package operator_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

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
	decision := operator.Action{ID: outbox.NewID(), Actor: "ada@example.com", Reason: "the billing topic accepts 2 MB now"}
	results, err := operator.New(pool, "public").Redrive(ctx, decision, dead)
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
	op := operator.New(pool, "public")
	filter := operator.DeadLetterFilter{
		Topic: "orders", Reason: "max_attempts", Since: time.Now().Add(-24 * time.Hour), Unresolved: true,
	}
	for more := true; more; {
		page, err := op.DeadLetters(ctx, filter)
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
