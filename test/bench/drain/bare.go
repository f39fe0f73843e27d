package drain

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// stored is what the loops read of an event.
type stored struct {
	seq                                   int64
	id                                    outbox.ID
	eventType, aggregateType, aggregateID string
	payload                               []byte
}

// A loop drains a table.
type loop interface {
	drain(ctx context.Context, to sender, settled func() error) error
	// reads is a part of the statement that reads.
	reads() string
}

// A sender is the publisher of the loops: it sends without waiting, and waits for all at once.
type sender interface {
	send(event *stored) error
	await(ctx context.Context) error
}

// Bare is the shortest loop that drains an outbox: one connection reads a batch, publishes it, waits for
// the broker and settles; the next batch is read while the last one is being published. It has no lease,
// no registry, no retry and no guard, so a second one beside it would publish everything twice.
type Bare struct {
	Env   *Env
	Batch int
	// Apart reads on a connection of its own, one batch ahead also while the last one is being settled.
	Apart bool

	read, settle string
}

// drain moves all events to the sender, and calls settled before it hangs up.
func (b Bare) drain(ctx context.Context, to sender, settled func() error) error {
	b.read, b.settle = statement("bare_read"), statement("bare_settle")
	conn, err := b.Env.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if b.Apart {
		return b.drainApart(ctx, conn, to, settled)
	}
	batch, err := b.batch(ctx, conn, outbox.ID{})
	for err == nil && len(batch) > 0 {
		ahead := b.ahead(ctx, conn, batch[len(batch)-1].id)
		err = publishAll(ctx, to, batch)
		next := <-ahead
		if err == nil {
			err = b.settleAll(ctx, conn, batch)
		}
		if err == nil {
			batch, err = next.batch, next.err
		}
	}
	if err != nil {
		return err
	}
	return settled()
}

func (Bare) reads() string { return "ORDER BY id LIMIT" }

type readAhead struct {
	batch []stored
	err   error
}

func (b Bare) ahead(ctx context.Context, conn *pgx.Conn, after outbox.ID) <-chan readAhead {
	answer := make(chan readAhead, 1)
	go func() {
		batch, err := b.batch(ctx, conn, after)
		answer <- readAhead{batch, err}
	}()
	return answer
}

func (b Bare) drainApart(ctx context.Context, settler *pgx.Conn, to sender, settled func() error) error {
	reader, err := b.Env.Connect(ctx)
	if err != nil {
		return err
	}
	defer reader.Close(ctx)
	next := <-b.ahead(ctx, reader, outbox.ID{})
	for next.err == nil && len(next.batch) > 0 {
		batch := next.batch
		ahead := b.ahead(ctx, reader, batch[len(batch)-1].id)
		err := publishAll(ctx, to, batch)
		if err == nil {
			err = b.settleAll(ctx, settler, batch)
		}
		next = <-ahead
		if err != nil {
			return err
		}
	}
	if next.err != nil {
		return next.err
	}
	return settled()
}

func (b Bare) batch(ctx context.Context, conn *pgx.Conn, after outbox.ID) ([]stored, error) {
	rows, err := conn.Query(ctx, b.read, [16]byte(after), b.Batch)
	if err != nil {
		return nil, fmt.Errorf("drain: read: %w", err)
	}
	return collect(rows, b.Batch)
}

func (b Bare) settleAll(ctx context.Context, conn *pgx.Conn, batch []stored) error {
	if _, err := conn.Exec(ctx, b.settle, ids(batch)); err != nil {
		return fmt.Errorf("drain: settle: %w", err)
	}
	return nil
}

// collect reads the events of one answer.
func collect(rows pgx.Rows, size int) ([]stored, error) {
	batch := make([]stored, 0, size)
	var one stored
	_, err := pgx.ForEachRow(rows, []any{
		&one.seq, (*[16]byte)(&one.id), &one.eventType, &one.aggregateType, &one.aggregateID, &one.payload,
	}, func() error {
		batch = append(batch, one)
		one.payload = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("drain: read: %w", err)
	}
	return batch, nil
}

func ids(batch []stored) [][16]byte {
	all := make([][16]byte, len(batch))
	for i := range batch {
		all[i] = batch[i].id
	}
	return all
}

func publishAll(ctx context.Context, to sender, batch []stored) error {
	for i := range batch {
		if err := to.send(&batch[i]); err != nil {
			return err
		}
	}
	return to.await(ctx)
}

// ledgerSender publishes to nowhere but the ledger.
type ledgerSender struct{ ledger *Ledger }

func (s ledgerSender) send(event *stored) error {
	s.ledger.Take(event.seq, event.aggregateID)
	return nil
}

// ToNowhere is the drainer of a loop whose events end in the ledger.
func ToNowhere(name, table string, l loop) Drainer {
	return Drainer{
		Name: name, Table: table, Reads: l.reads(),
		Drain: func(ctx context.Context, ledger *Ledger, settled func() error) error {
			return l.drain(ctx, ledgerSender{ledger}, settled)
		},
	}
}

func (ledgerSender) await(context.Context) error { return nil }
