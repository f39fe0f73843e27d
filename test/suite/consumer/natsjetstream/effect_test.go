package natsjetstream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// effects is a schema with an inbox, and a table on which nothing keeps an effect from happening twice.
func effects(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t, pgtest.Servers()[0])
	if err := schema.Inbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", db.URL),
		schema.Options{Schema: db.Schema}); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, "CREATE TABLE {schema}.effects (event_id uuid NOT NULL, n int NOT NULL)")
	return db
}

// once is a handler whose effect and mark are one transaction.
func once(db *pgtest.DB, event *consumer.Event, payload license) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		first, err := inbox.First(ctx, outbox.InSchema(tx, db.Schema), name, event.ID)
		if err != nil {
			return err
		}
		if !first {
			return consumer.ErrDuplicate
		}
		_, err = tx.Exec(ctx, db.SQL("INSERT INTO {schema}.effects VALUES ($1, $2)"), event.ID.String(), payload.N)
		return err
	}
}

// eachOnce fails the test unless so many events had one effect each.
func eachOnce(t *testing.T, db *pgtest.DB, events int) {
	t.Helper()
	all, distinct := db.Count(t, "SELECT count(*) FROM {schema}.effects"),
		db.Count(t, "SELECT count(DISTINCT event_id) FROM {schema}.effects")
	if all != events || distinct != events {
		t.Errorf("%d events had %d effects, of %d events", events, all, distinct)
	}
}

// TestFaultI12AckLost: the effect is there and the acknowledgement never arrives. The message comes again, the inbox
// knows it, and this time the server hears of it.
func TestFaultI12AckLost(t *testing.T) {
	t.Parallel()
	w, db := newEnv(t), effects(t)
	wire := proxy.New(t, w.server.Address)
	c := w.consumer(consumer.Config{}, func(ctx context.Context, event *consumer.Event, payload license) error {
		return outbox.InTx(ctx, db.Pool, once(db, event, payload))
	})
	w.durable(c, never)
	wire.At("+ACK", proxy.LoseRequest)
	w.run(w.connect(wire.Address()), c, 0)
	id := w.emit("a", 1)
	eventually.True(t, "the word is lost", func() bool { return wire.Faults() == 1 })
	w.hurry()
	eventually.True(t, "the event is known", func() bool { return w.seen.count(id, consumer.Duplicate) > 0 })
	w.done()
	eachOnce(t, db, 1)
	if wire.Faults() != 1 || w.seen.count(id, consumer.Handled) != 1 {
		t.Errorf("the wire broke %d times; seen: %v", wire.Faults(), w.seen.all)
	}
	w.noLetters()
}

// TestServerKilledUnderLoad: two loops, a server that is killed and started again under them, and one effect per event.
func TestServerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const events, kills = 400, 4
	w, db := newEnv(t), effects(t)
	var begun atomic.Int64
	c := w.consumer(consumer.Config{}, func(ctx context.Context, event *consumer.Event, payload license) error {
		begun.Add(1)
		return outbox.InTx(ctx, db.Pool, once(db, event, payload))
	})
	w.durable(c, 2*time.Second)
	for i := range events {
		w.emit(fmt.Sprint(i%20), i)
	}
	for range 2 {
		w.run(w.connect(w.server.Address), c, 4)
	}
	for kill := range int64(kills) {
		eventually.True(t, "the load goes on", func() bool { return begun.Load() >= (kill+1)*events/(kills+1) })
		w.server.Close()
		w.start()
	}
	eventually.True(t, "every event had its effect", func() bool {
		return db.Count(t, "SELECT count(DISTINCT event_id) FROM {schema}.effects") == events
	})
	w.done()
	eachOnce(t, db, events)
	w.noLetters()
}

// TestFaultI13SlowHandler: handlers that take longer than the AckWait, and messages that wait behind them for longer,
// are not delivered again, also when another process has nothing to do.
func TestFaultI13SlowHandler(t *testing.T) {
	t.Parallel()
	const ackWait = 8 * time.Second // the machine may stand still for most of it
	w := newEnv(t)
	c := w.consumer(consumer.Config{}, func(_ context.Context, _ *consumer.Event, payload license) error {
		if payload.N < 2 {
			<-time.After(ackWait * 5 / 4)
		}
		return nil
	})
	w.durable(c, ackWait)
	for i := range 4 {
		w.emit(fmt.Sprint(i%2), i) // the second of each aggregate waits for as long
	}
	w.run(w.connect(w.server.Address), c, 0)
	w.run(w.connect(w.server.Address), c, 0)
	eventually.True(t, "all are handled", func() bool { return w.seen.count(anyEvent, consumer.Handled) >= 4 })
	w.done()
	if len(w.seen.all) != 4 {
		t.Errorf("4 messages were delivered %d times", len(w.seen.all))
	}
	for _, o := range w.seen.all {
		if o.Event.Attempt != 1 {
			t.Errorf("the event %s was delivered %d times", o.Event.ID, o.Event.Attempt)
		}
	}
}
