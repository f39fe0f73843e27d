package pinned

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

//go:embed sql/*.sql
var statements embed.FS

func statement(name string) string {
	text, _ := statements.ReadFile("sql/" + name + ".sql") // embedded
	return strings.TrimSpace(string(text))
}

// database is the run's own.
type database struct{ *bench.Outbox }

func newDatabase(ctx context.Context, plan Plan) (*database, error) {
	made, err := bench.NewOutbox(ctx, plan.URL, plan.Workers+2)
	if err != nil {
		return nil, err
	}
	return &database{made}, nil
}

// reads is what the relay's reads have cost so far, and what is dead.
type reads struct {
	calls  int64
	millis float64
	blocks int64
	dead   int64
}

func (db *database) reads(ctx context.Context) (reads, error) {
	var r reads
	err := db.Producers.QueryRow(ctx, statement("reads")).Scan(&r.calls, &r.millis, &r.blocks, &r.dead)
	if err != nil {
		return r, fmt.Errorf("pinned: statistics: %w", err)
	}
	return r, nil
}

// makeDead inserts events and settles them, as a relay would have while the pin was held. It spares the server what
// leaves nothing behind: a flush of every commit, and to look at the whole table for what is new.
func (db *database) makeDead(ctx context.Context, count, aggregates int, done func(int)) (err error) {
	if err := db.Exec(ctx, "SET synchronous_commit = off", "SET enable_seqscan = off"); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, db.Exec(ctx, "RESET synchronous_commit", "RESET enable_seqscan"))
	}()
	const chunk = 50_000
	for made := 0; made < count; made += chunk {
		n := min(chunk, count-made)
		last, err := db.lastNumber(ctx)
		if err != nil {
			return err
		}
		if _, err := db.Control.Exec(ctx, statement("insert_dead"), n, aggregates); err != nil {
			return fmt.Errorf("pinned: insert: %w", err)
		}
		if _, err := db.Control.Exec(ctx, statement("settle_dead"), last); err != nil {
			return fmt.Errorf("pinned: settle: %w", err)
		}
		done(made + n)
	}
	return nil
}

// lastNumber is the highest number that was drawn.
func (db *database) lastNumber(ctx context.Context) (int64, error) {
	var last int64
	err := db.Control.QueryRow(ctx,
		"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.outbox_events_seq_seq").Scan(&last)
	return last, err
}

// setFloors puts the floor of every lane where a relay would have it.
func (db *database) setFloors(ctx context.Context, floor int64) error {
	_, err := db.Control.Exec(ctx, "UPDATE public.outbox_lanes SET floor = $1", floor)
	return err
}

// pin is something that keeps the database from cleaning up.
type pin struct {
	conn *pgx.Conn
	tx   pgx.Tx
}

// begin opens a transaction on a connection of its own.
func (db *database) begin(ctx context.Context, level pgx.TxIsoLevel) (*pin, error) {
	config, err := db.Config("bench-pin")
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("pinned: connect: %w", err)
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &pin{conn: conn, tx: tx}, nil
}

// snapshot takes a snapshot and keeps it.
func (db *database) snapshot(ctx context.Context) (*pin, error) {
	p, err := db.begin(ctx, pgx.RepeatableRead)
	if err != nil {
		return nil, err
	}
	var events int
	if err := p.tx.QueryRow(ctx, "SELECT count(*) FROM public.outbox_meta").Scan(&events); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// close ends the transaction, whatever it did.
func (p *pin) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.conn.Close(ctx)
}
