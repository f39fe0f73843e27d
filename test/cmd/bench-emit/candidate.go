package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/candidate"
)

// The layout that comes next, written to with the library's checks and arguments and with statements of its own.
const (
	candidateOne   = "candidate: emit"
	candidateKeyed = "candidate: emit, dedupe key"
	candidateMany  = "candidate: emit of 100 events"
)

func (d *drivers) candidates() map[string]transaction {
	one, keyed, many := candidate.Statement("emit_one"), candidate.Statement("emit_one_deduped"),
		candidate.Statement("emit_many")
	return map[string]transaction{
		candidateOne: d.business(func(ctx context.Context, tx pgx.Tx, o order) error {
			return emitBy(ctx, tx, one, o.event())
		}),
		candidateKeyed: d.business(func(ctx context.Context, tx pgx.Tx, o order) error {
			return emitBy(ctx, tx, keyed, o.keyed())
		}),
		candidateMany: d.hundred(func(ctx context.Context, tx pgx.Tx, orders []order) error {
			events := make([]outbox.Event, len(orders))
			for i, o := range orders {
				events[i] = o.event()
			}
			return emitBy(ctx, tx, many, events...)
		}),
	}
}

// emitBy is [outbox.Emit] with another statement.
func emitBy(ctx context.Context, tx pgx.Tx, text string, events ...outbox.Event) error {
	stmt, err := outbox.Statement(candidate.Schema, events...)
	if err != nil {
		return err
	}
	var answer string
	if err := tx.QueryRow(ctx, text, stmt.Args...).Scan(&answer); err != nil {
		return err
	}
	_, err = stmt.Receipts(answer)
	return err
}

// installCandidate makes the outbox that they write to, as full as the others.
func (r *run) installCandidate(ctx context.Context) error {
	if err := r.copyOutbox(ctx, candidate.Schema, []string{candidate.Statement("layout")}); err != nil {
		return err
	}
	if _, err := r.env.db.Control.Exec(ctx, statement("fill_events", candidate.Schema), r.options.rows,
		accounts); err != nil {
		return err
	}
	return r.env.db.Exec(ctx, "VACUUM ANALYZE")
}
