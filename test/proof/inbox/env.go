package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// env is what all scenarios share: a schema with an inbox and the table of effects, a stream of dead letters, and a
// Redis.
type env struct {
	plan   Plan
	run    string // the schema's name, and how everything else begins
	folder string
	pool   *pgxpool.Pool
	conn   *nats.Conn
	js     jetstream.JetStream
	redis  *server.Server
}

func openEnv(ctx context.Context, plan Plan) (_ *env, err error) {
	w := &env{plan: plan, run: pgtest.NewName("inbox_proof"), folder: plan.Folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.pool, err = pgxpool.New(ctx, plan.Postgres); err != nil {
		return w, fmt.Errorf("inbox proof: %w", err)
	}
	std := stdlib.OpenDBFromPool(w.pool)
	defer std.Close()
	if err := schema.Inbox.Up(ctx, std, schema.Options{Schema: w.run}); err != nil {
		return w, err
	}
	_, err = w.pool.Exec(ctx, w.sql(`CREATE TABLE {schema}.effects (n bigint GENERATED ALWAYS AS IDENTITY, consumer `+
		`text NOT NULL, event_id uuid NOT NULL,
		worker text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`))
	if err != nil {
		return w, fmt.Errorf("inbox proof: %w", err)
	}
	if w.conn, err = nats.Connect(plan.Broker, nats.Timeout(eventually.Patience), nats.MaxReconnects(-1)); err != nil {
		return w, fmt.Errorf("inbox proof: connect to NATS: %w", err)
	}
	if w.js, err = jetstream.New(w.conn, jetstream.WithDefaultTimeout(eventually.Patience)); err != nil {
		return w, fmt.Errorf("inbox proof: %w", err)
	}
	if err := w.createStream(ctx, w.deadStream(), w.run+".dead.>"); err != nil {
		return w, err
	}
	if w.redis, err = server.NewRedis(plan.Folder, "--maxmemory-policy", "noeviction"); err != nil {
		return w, err
	}
	return w, w.redis.Start(ctx)
}

func (w *env) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", w.run)
}

func (w *env) deadStream() string { return w.run + "-dead" }

func (w *env) createStream(ctx context.Context, name, subject string) error {
	_, err := w.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{subject}, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return fmt.Errorf("inbox proof: create the stream %s: %w", name, err)
	}
	return nil
}

func (w *env) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
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

// effects reads the rows of a consumer.
func (w *env) effects(ctx context.Context, consumer string) (effects []effect, err error) {
	rows, err := w.pool.Query(ctx,
		w.sql("SELECT event_id::text, worker, at FROM {schema}.effects WHERE consumer = $1 ORDER BY n"), consumer)
	if err != nil {
		return nil, fmt.Errorf("inbox proof: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e effect
		var id string
		if err := rows.Scan(&id, &e.Worker, &e.At); err != nil {
			return nil, fmt.Errorf("inbox proof: %w", err)
		}
		if e.Event, err = outbox.ParseID(id); err != nil {
			return nil, err
		}
		effects = append(effects, e)
	}
	return effects, rows.Err()
}

// deadLetters reads those of a consumer.
func (w *env) deadLetters(ctx context.Context, subject string) (map[outbox.ID]string, error) {
	dead := map[outbox.ID]string{}
	stream, err := w.js.Stream(ctx, w.deadStream())
	if err != nil {
		return nil, fmt.Errorf("inbox proof: dead letters: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return nil, fmt.Errorf("inbox proof: dead letters: %w", err)
	}
	reader, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return nil, fmt.Errorf("inbox proof: dead letters: %w", err)
	}
	for range info.State.Subjects[subject] {
		message, err := reader.Next(jetstream.FetchMaxWait(eventually.Patience))
		if err != nil {
			return nil, fmt.Errorf("inbox proof: dead letters: %w", err)
		}
		id, err := outbox.ParseID(message.Headers().Get("event_id"))
		if err != nil {
			return nil, fmt.Errorf("inbox proof: a dead letter without an event: %w", err)
		}
		dead[id] = message.Headers().Get(natsjetstream.AttributeReason)
	}
	return dead, nil
}
