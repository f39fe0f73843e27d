// Command bench-inbox measures what the inbox in PostgreSQL adds to a consumer's transaction of one insert, as
// ratios of medians: with First, with First and Newer, with First for a copy, which skips the insert, and with
// inbox_first in SQL. The same handler twice is the A/A control, which says how small a difference the run can see.
//
// It ends with one line of name=value figures. It fails when an effect is missing or happened twice, or when too little
// was measured; a ratio of times never fails it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

const (
	consumer = "bench"
	// The base, and the figures' names of the others.
	plain = "plain"
	again = "aa"
)

// atLeast is how many transactions of each subject a round has.
const atLeast = 50

func main() { os.Exit(command.Main("bench-inbox", measure)) }

func measure(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("bench-inbox", flag.ContinueOnError)
	url := flags.String("url", services.Postgres18(), "server to measure on, as a role that may create databases")
	rounds := flags.Int("rounds", 9, "samples of each subject")
	length := flags.Duration("length", 2*time.Second, "how long a round lasts, for all subjects together")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	db, err := bench.NewDatabase(ctx, *url)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	handlers, err := prepare(ctx, db)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, handlers.close()) }()
	progress := bench.NewProgress(os.Stderr, "bench-inbox", time.Duration(*rounds)**length)
	subjects := handlers.subjects()
	turns := bench.Alternation{Rounds: *rounds, Length: *length, AtLeast: atLeast, Done: func(s bench.Sample) {
		progress.Done(*length/time.Duration(len(subjects)), s.Subject)
	}}
	samples, err := turns.Run(ctx, subjects)
	if err != nil {
		return false, err
	}
	return report(ctx, db, handlers, samples)
}

// handlers are a consumer's, on connections of their own.
type handlers struct {
	conns   []*pgx.Conn
	db      *bench.Database
	known   outbox.ID // was handled before
	seq     int64
	effects int // that should be in the table
}

// prepare makes the tables, with a past of 100,000 marks.
func prepare(ctx context.Context, db *bench.Database) (*handlers, error) {
	config, err := db.Config("bench-inbox-migrate")
	if err != nil {
		return nil, err
	}
	std := stdlib.OpenDB(*config)
	if err := errors.Join(schema.Inbox.Up(ctx, std, schema.Options{}), std.Close()); err != nil {
		return nil, err
	}
	h := &handlers{db: db, known: outbox.NewID()}
	return h, db.Exec(
		ctx,
		"CREATE TABLE effects (id uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
		"INSERT INTO inbox_handled (handled_at, event_id, consumer) SELECT now() - i * interval '1 second', "+
			"gen_random_uuid(), 'bench' FROM generate_series(1, 100000) i",
		"INSERT INTO inbox_handled (event_id, consumer) VALUES ('"+h.known.String()+"', '"+consumer+"')",
		"ANALYZE",
	)
}

func (h *handlers) close() error {
	var problems []error
	for _, conn := range h.conns {
		problems = append(problems, conn.Close(context.Background()))
	}
	return errors.Join(problems...)
}

func (h *handlers) subjects() []bench.Single {
	inSQL := func(ctx context.Context, tx pgx.Tx, id outbox.ID) (first bool, err error) {
		err = tx.QueryRow(ctx, "SELECT inbox_first($1, $2::text::uuid)", consumer, id.String()).Scan(&first)
		return first, err
	}
	withFirst := func(ctx context.Context, tx pgx.Tx, id outbox.ID) (bool, error) {
		return inbox.First(ctx, tx, consumer, id)
	}
	return []bench.Single{
		h.subject(plain, nil),
		h.subject(again, nil),
		h.subject("first", withFirst),
		h.subject("first_newer", func(ctx context.Context, tx pgx.Tx, id outbox.ID) (bool, error) {
			first, err := inbox.First(ctx, tx, consumer, id)
			if err != nil || !first {
				return first, err
			}
			h.seq++
			return inbox.Newer(ctx, tx, consumer, outbox.Aggregate{Type: "order", ID: fmt.Sprint(h.seq % 1000)}, h.seq)
		}),
		h.subject("copy", func(ctx context.Context, tx pgx.Tx, _ outbox.ID) (bool, error) {
			return withFirst(ctx, tx, h.known)
		}),
		h.subject("sql", inSQL),
	}
}

// subject is a handler that asks before its effect, if it has something to ask.
func (h *handlers) subject(name string, query func(context.Context, pgx.Tx, outbox.ID) (bool, error)) bench.Single {
	var conn *pgx.Conn
	return bench.Single{Name: name, Transaction: func(ctx context.Context, _ *bench.Client) error {
		if conn == nil {
			config, err := h.db.Config("bench-inbox-" + name)
			if err != nil {
				return err
			}
			if conn, err = pgx.ConnectConfig(ctx, config); err != nil {
				return fmt.Errorf("connect: %w", err)
			}
			h.conns = append(h.conns, conn)
		}
		return outbox.InTx(ctx, conn, func(ctx context.Context, tx pgx.Tx) error {
			id := outbox.NewID()
			if query != nil {
				if yes, err := query(ctx, tx, id); err != nil || !yes {
					return err
				}
			}
			h.effects++
			_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1::text::uuid)", id.String())
			return err
		})
	}}
}

// report compares everything with the plain handler, which ran twice.
func report(ctx context.Context, db *bench.Database, h *handlers, samples []bench.Sample) (ok bool, err error) {
	line := figures.New("bench-inbox")
	fewest := samples[0].Transactions
	for _, s := range samples {
		fewest = min(fewest, s.Transactions)
	}
	for _, name := range []string{again, "first", "first_newer", "copy", "sql"} {
		ratio, err := bench.Compare(samples, bench.Median, name, plain)
		if err != nil {
			return false, err
		}
		line.Addf(name, "%.2f", ratio.Median)
		if name == again {
			line.Addf("resolution", "%.2f", ratio.Resolution())
		}
	}
	var effects int
	if err := db.Control.QueryRow(ctx, "SELECT count(*) FROM effects").Scan(&effects); err != nil {
		return false, fmt.Errorf("count: %w", err)
	}
	ok = effects == h.effects && fewest >= atLeast
	line.Addf("fewest", "%d", fewest)
	line.Addf("effects_missing", "%d", h.effects-effects)
	line.Addf("ok", "%t", ok)
	_, err = fmt.Fprintln(os.Stdout, line)
	return ok, err
}
