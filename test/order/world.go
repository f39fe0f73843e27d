package order

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/bench"
)

//go:embed sql/witness.sql
var witness string

// duplicateWindow is the shortest that JetStream takes. A longer one would hide the duplicates that kills
// cause, and the proof could not see that they are explained.
const duplicateWindow = 100 * time.Millisecond

// world is the database and the stream of one run.
type world struct {
	run       string
	url       string // of the run's database
	contracts contracts
	db        *bench.Database
	nats      *nats.Conn
	stream    jetstream.Stream
	js        jetstream.JetStream
}

// newWorld makes a database and a stream that only this run uses. Close removes both.
func newWorld(ctx context.Context, postgresURL, natsURL string) (*world, error) {
	w := &world{run: fmt.Sprintf("proof_%d_%d", os.Getpid(), time.Now().UnixNano()%1e9)}
	w.contracts = newContracts(w.run)
	var err error
	if w.db, err = bench.NewDatabase(ctx, postgresURL); err != nil {
		return nil, err
	}
	if err = errors.Join(w.prepareDatabase(ctx, postgresURL), w.prepareStream(ctx, natsURL)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *world) prepareDatabase(ctx context.Context, postgresURL string) error {
	at, err := url.Parse(postgresURL)
	if err != nil {
		return fmt.Errorf("order: the database's address: %w", err)
	}
	at.Path = "/" + w.db.Name
	w.url = at.String()
	config, err := w.db.Config("proof-migrate")
	if err != nil {
		return err
	}
	std := stdlib.OpenDB(*config)
	defer std.Close()
	if err := schema.Outbox.Up(ctx, std, schema.Options{}); err != nil {
		return err
	}
	return w.db.Exec(ctx, witness)
}

func (w *world) prepareStream(ctx context.Context, natsURL string) error {
	var err error
	if w.nats, err = nats.Connect(natsURL); err != nil {
		return fmt.Errorf("order: connect to NATS: %w (is it running? `make services` starts it)", err)
	}
	if w.js, err = jetstream.New(w.nats); err != nil {
		return fmt.Errorf("order: JetStream: %w", err)
	}
	w.stream, err = w.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: w.run, Subjects: []string{w.run + ".>"}, Storage: jetstream.FileStorage, Duplicates: duplicateWindow,
	})
	if err != nil {
		return fmt.Errorf("order: create a stream: %w", err)
	}
	return nil
}

// Close removes what the run made, also after an interrupt.
func (w *world) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var problems []error
	if w.stream != nil {
		problems = append(problems, w.js.DeleteStream(ctx, w.run))
	}
	if w.nats != nil {
		w.nats.Close()
	}
	return errors.Join(append(problems, w.db.Close())...)
}

// arrivals is how many messages the stream has taken.
func (w *world) arrivals(ctx context.Context) (uint64, error) {
	info, err := w.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("order: ask the stream: %w", err)
	}
	return info.State.LastSeq, nil
}
