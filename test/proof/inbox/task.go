package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// form is how a consumer remembers what it has handled.
type form string

const (
	inPostgres form = "postgres" // inbox.First in the transaction of the effect
	inRedis    form = "redis"    // Guard.Once
	oneCall    form = "onecall"  // CheckAndMarkProcessed
	// Two that are wrong, for the tests of this package.
	apart    form = "apart"    // inbox.First in a transaction of its own
	unmarked form = "unmarked" // none
)

// settings are what all processes of a consumer are told.
type settings struct {
	Consumer    string        `json:"consumer"`
	Form        form          `json:"form"`
	Database    string        `json:"database"`
	Schema      string        `json:"schema"`
	Redis       string        `json:"redis"`
	NATS        string        `json:"nats"`
	Stream      string        `json:"stream"`
	DeadLetters string        `json:"dead_letters"`
	AckWait     time.Duration `json:"ack_wait"`
	Hold        time.Duration `json:"hold"`
	Concurrency int           `json:"concurrency"`
	MaxAttempts int           `json:"max_attempts"`
	// Heedless handlers do not look at their context.
	Heedless bool `json:"heedless,omitempty"`
}

// task is what one process is told, as a file of JSON.
type task struct {
	settings

	Name    string `json:"name"`
	Journal string `json:"journal"`
}

// Live is a consumer's process: it handles events until it is asked to stop, or dies.
func Live(ctx context.Context, file string) (err error) {
	var l task
	if err := process.Told(file, &l); err != nil {
		return err
	}
	log, err := os.OpenFile(l.Journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("inbox proof: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	logging.Disable() // the client's own log, which says how often it could not connect
	w := &worker{task: l, journal: &journal{file: log}}
	config, err := pgxpool.ParseConfig(l.Database)
	if err != nil {
		return fmt.Errorf("inbox proof: %w", err)
	}
	config.MaxConns = int32(l.Concurrency)
	if w.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("inbox proof: %w", err)
	}
	defer w.pool.Close()
	client := redis.NewClient(&redis.Options{Addr: l.Redis, ContextTimeoutEnabled: true, DialerRetries: 1})
	defer func() { err = errors.Join(err, client.Close()) }()
	client.AddHook(overhears{w.journal})
	// Keep is longer than the proof, and nothing is left behind for long.
	if w.guard, err = redisinbox.New(client,
		redisinbox.Config{Prefix: l.Schema, Hold: l.Hold, Keep: time.Hour}); err != nil {
		return err
	}
	c, err := w.consumer()
	if err != nil {
		return err
	}
	conn, err := nats.Connect(l.NATS, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
	if err != nil {
		return fmt.Errorf("inbox proof: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("inbox proof: %w", err)
	}
	return natsjetstream.Consume(ctx, js, c, natsjetstream.ConsumeConfig{
		Stream: l.Stream, DeadLetters: l.DeadLetters, Concurrency: l.Concurrency,
	})
}

// consumer makes the consumer of a process.
func (w *worker) consumer() (*consumer.Consumer, error) {
	config := w.task.config()
	config.Observe = w.journal.observe
	handle := map[form]consumer.Handler{
		inPostgres: w.inPostgres, inRedis: w.effectAlone, oneCall: w.oneCall, apart: w.apart, unmarked: w.effectAlone,
	}[w.task.Form]
	if w.task.Form == inRedis {
		config.Middleware = []consumer.Middleware{w.guard.Once}
	}
	return consumer.New(config, consumer.OnType(eventType, handle))
}

// config is that of the consumer, in a process and where its durable is made.
func (s settings) config() consumer.Config {
	return consumer.Config{
		Name: s.Consumer, MaxAttempts: s.MaxAttempts, Deadline: time.Minute,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
}
