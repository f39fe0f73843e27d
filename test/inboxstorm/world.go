package inboxstorm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/consumer/natsjetstream"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/pgtest"
	"github.com/posthaste-dev/posthaste/test/server"
)

// patience is for a server that is there, on a busy machine.
const patience = pgtest.Patience

// world is what all scenes share: a schema with an inbox and the table of effects, a stream of dead letters, and a Redis.
type world struct {
	plan   Plan
	run    string // the schema's name, and how everything else begins
	folder string
	pool   *pgxpool.Pool
	conn   *nats.Conn
	js     jetstream.JetStream
	redis  *server.Server
}

func openWorld(ctx context.Context, plan Plan) (_ *world, err error) {
	w := &world{plan: plan, run: pgtest.NewName("inboxstorm"), folder: plan.Folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.pool, err = pgxpool.New(ctx, plan.Postgres); err != nil {
		return w, fmt.Errorf("inboxstorm: %w", err)
	}
	std := stdlib.OpenDBFromPool(w.pool)
	defer std.Close()
	if err := schema.Inbox.Up(ctx, std, schema.Options{Schema: w.run}); err != nil {
		return w, err
	}
	_, err = w.pool.Exec(ctx, w.sql(`CREATE TABLE {schema}.effects (n bigint GENERATED ALWAYS AS IDENTITY, consumer text NOT NULL, event_id uuid NOT NULL,
		life text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`))
	if err != nil {
		return w, fmt.Errorf("inboxstorm: %w", err)
	}
	if w.conn, err = nats.Connect(plan.Broker, nats.Timeout(patience), nats.MaxReconnects(-1)); err != nil {
		return w, fmt.Errorf("inboxstorm: connect to NATS: %w", err)
	}
	if w.js, err = jetstream.New(w.conn, jetstream.WithDefaultTimeout(patience)); err != nil {
		return w, fmt.Errorf("inboxstorm: %w", err)
	}
	if err := w.createStream(ctx, w.deadStream(), w.run+".dead.>"); err != nil {
		return w, err
	}
	if w.redis, err = newRedis(plan.Folder); err != nil {
		return w, err
	}
	return w, w.redis.Start(ctx)
}

func (w *world) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", w.run)
}

func (w *world) deadStream() string { return w.run + "-dead" }

func (w *world) createStream(ctx context.Context, name, subject string) error {
	_, err := w.js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{subject}, Storage: jetstream.FileStorage})
	if err != nil {
		return fmt.Errorf("inboxstorm: create the stream %s: %w", name, err)
	}
	return nil
}

func (w *world) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.redis.Close()
	if w.js != nil {
		err = w.js.DeleteStream(ctx, w.deadStream())
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = nil
		}
	}
	if w.conn != nil {
		w.conn.Close()
	}
	if w.pool != nil {
		_, dropping := w.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+w.run+" CASCADE")
		err = errors.Join(err, dropping)
		w.pool.Close()
	}
	return err
}

// newRedis prepares a Redis that remembers nothing when it dies.
func newRedis(folder string) (*server.Server, error) {
	address, err := server.FreeAddress()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(folder, "redis-")
	if err != nil {
		return nil, fmt.Errorf("inboxstorm: %w", err)
	}
	_, port, _ := strings.Cut(address, ":")
	return &server.Server{
		Name: "redis-server", Address: address, Log: filepath.Join(data, "log"), Program: "redis-server",
		Args: []string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--dir", data},
	}, nil
}

// effects reads the rows of a consumer.
func (w *world) effects(ctx context.Context, consumer string) (effects []effect, err error) {
	rows, err := w.pool.Query(ctx, w.sql("SELECT event_id::text, life, at FROM {schema}.effects WHERE consumer = $1 ORDER BY n"), consumer)
	if err != nil {
		return nil, fmt.Errorf("inboxstorm: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e effect
		var id string
		if err := rows.Scan(&id, &e.Life, &e.At); err != nil {
			return nil, fmt.Errorf("inboxstorm: %w", err)
		}
		if e.Event, err = outbox.ParseID(id); err != nil {
			return nil, err
		}
		effects = append(effects, e)
	}
	return effects, rows.Err()
}

// deadLetters reads those of a consumer.
func (w *world) deadLetters(ctx context.Context, subject string) (map[outbox.ID]string, error) {
	dead := map[outbox.ID]string{}
	stream, err := w.js.Stream(ctx, w.deadStream())
	if err != nil {
		return nil, fmt.Errorf("inboxstorm: dead letters: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return nil, fmt.Errorf("inboxstorm: dead letters: %w", err)
	}
	reader, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return nil, fmt.Errorf("inboxstorm: dead letters: %w", err)
	}
	for range info.State.Subjects[subject] {
		message, err := reader.Next(jetstream.FetchMaxWait(patience))
		if err != nil {
			return nil, fmt.Errorf("inboxstorm: dead letters: %w", err)
		}
		id, err := outbox.ParseID(message.Headers().Get("event_id"))
		if err != nil {
			return nil, fmt.Errorf("inboxstorm: a dead letter without an event: %w", err)
		}
		dead[id] = message.Headers().Get(natsjetstream.AttributeReason)
	}
	return dead, nil
}
