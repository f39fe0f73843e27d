// Command example-event emits one event as the API does, in the transaction of a change, and waits until the broker has
// it: the shortest way to see that a deployment works. A publisher must run.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/examples/marketplace/brokers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/examples/marketplace/process"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
	"github.com/posthaste-dev/posthaste/outbox"
)

// patience is how long the event may take. It takes a second, and as long as a lease where a publisher was killed just
// now.
const patience = 3 * time.Minute

func main() { process.Main("example-event", run) }

func run(ctx context.Context, logger *slog.Logger) error {
	values, err := settings.Load(os.Args[1:], os.Environ(), settings.NeedsBroker)
	if err != nil {
		return err
	}
	settings.WarnInsecure(ctx, values, logger)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pool, err := pgxpool.New(ctx, settings.DatabaseURL.Get(values).Reveal())
	if err != nil {
		return fmt.Errorf("database.url: %w", err)
	}
	defer pool.Close()
	broker, err := brokers.Open(ctx, values)
	if err != nil {
		return err
	}
	topic := settings.Topics(values).Domain
	err = watch(ctx, pool, broker, topic)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the event is not in %s after %s: does a publisher run, and is it ready (GET /readyz)?",
			topic, patience)
	}
	return errors.Join(err, broker.Close())
}

// watch emits the event and shows it when it comes.
func watch(ctx context.Context, pool *pgxpool.Pool, broker brokers.Broker, topic string) error {
	var id outbox.ID
	var emitted time.Time
	emit := func() (err error) {
		if id, emitted, err = upload(ctx, pool); err == nil {
			fmt.Printf("emitted  %s %s\n", id, events.MediaUploaded.Contract().Type)
		}
		return err
	}
	return broker.Watch(ctx, topic, emit, func(message brokers.Message) bool {
		if message.Attributes["event_id"] != id.String() {
			return false // another's
		}
		fmt.Printf("arrived  %s after %d ms\n", topic, time.Since(emitted).Milliseconds())
		for _, name := range slices.Sorted(maps.Keys(message.Attributes)) {
			fmt.Printf("         %s: %s\n", name, message.Attributes[name])
		}
		fmt.Printf("         %s\n", message.Body)
		return true
	})
}

// upload adds a picture to a store of its own, as two requests to the API would. It returns the event's id, and when
// all was ready to be committed.
func upload(ctx context.Context, pool *pgxpool.Pool) (id outbox.ID, emitted time.Time, err error) {
	bell := outbox.NewDoorbell(outbox.RingPgx(pool, outbox.DefaultSchema)) //nolint:contextcheck // it ends with Close
	defer bell.Close()
	store, media := outbox.NewID(), outbox.NewID()
	err = bell.After(outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `WITH store AS (INSERT INTO stores (id, name) VALUES ($1, 'Example') RETURNING id)
			INSERT INTO media (id, store_id, kind, content_type, bytes) SELECT $2, id, 'photo', 'image/jpeg', 1024 FROM store`,
			store, media)
		if err != nil {
			return fmt.Errorf("upload: %w", err)
		}
		receipts, err := outbox.Emit(ctx, tx, events.MediaUploaded.New(media.String(), events.MediaUploadedV1{
			MediaID: media.String(), StoreID: store.String(), Kind: "photo", ContentType: "image/jpeg", Bytes: 1024,
		}))
		if err == nil {
			id, emitted = receipts[0].ID, time.Now()
		}
		return err
	}))
	return id, emitted, err
}
