package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

// name is that of the consumer of both sides: they share the messages, and the marks of the inbox.
const name = "upgrade"

// consume handles messages until it is told to stop.
func consume(ctx context.Context, t task) error {
	pool, err := pgxpool.New(ctx, t.Database)
	if err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	defer pool.Close()
	conn, err := nats.Connect(t.NATS, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
	if err != nil {
		return fmt.Errorf("the broker: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("the broker: %w", err)
	}
	changed, remarked := contracts(t.Schema)
	handle := func(ctx context.Context, event *consumer.Event, b body) error { return t.handle(ctx, pool, event, b) }
	handler, err := consumer.New(consumer.Config{Name: name}, consumer.On(changed, handle), consumer.On(remarked, handle))
	if err != nil {
		return fmt.Errorf("the consumer: %w", err)
	}
	if _, err := js.CreateOrUpdateConsumer(ctx, t.Stream, natsjetstream.PullConsumer(handler)); err != nil {
		return fmt.Errorf("the stream's consumer: %w", err)
	}
	return natsjetstream.Consume(ctx, js, handler, natsjetstream.ConsumeConfig{
		Stream: t.Stream, DeadLetters: t.DeadLetters, Concurrency: 4,
	})
}

// handle marks the event and writes its effect in one transaction.
func (t task) handle(ctx context.Context, pool *pgxpool.Pool, event *consumer.Event, b body) error {
	if b.Version == 0 || b.By == "" {
		return consumer.Poison(errors.New("the event has lost its data"))
	}
	return outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		first, err := inbox.First(ctx, outbox.InSchema(tx, t.Schema), name, event.ID)
		if err != nil {
			return err
		}
		if !first {
			return consumer.ErrDuplicate
		}
		const effect = "INSERT INTO {schema}.upgrade_effects (event_id, by) VALUES ($1::text::uuid, $2)"
		if _, err := tx.Exec(ctx, t.sql(effect), event.ID.String(), t.Name); err != nil {
			return fmt.Errorf("the effect: %w", err)
		}
		return nil
	})
}

// sql puts the name of the schema into a statement.
func (t task) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", t.Schema)
}
