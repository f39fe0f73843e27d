package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// What each index and the trigger cost is measured on copies of the outbox that lack it.

const (
	shipped      = "as shipped"
	shippedAgain = "as shipped again"
)

// costPhase is the turns of the copies with one event, or a hundred, a transaction. How many copies there
// are is known once the catalog was read; the plan needs only a guess.
func costPhase(events int) phase {
	p := phase{name: "costs", clients: 1, half: true, base: shipped, again: shippedAgain, subjects: make([]string, 13)}
	if events > 1 {
		p.name = "costs100"
	}
	return p
}

// scratch is an outbox that lacks something, or has it otherwise.
type scratch struct {
	name    string
	changes []string // statements; {schema} is the copy's
}

// dropTrigger leaves out the trigger that our own statements only pass by: its condition is not theirs.
const dropTrigger = "DROP TRIGGER outbox_events_fill_lane ON {schema}.outbox_events"

// scratches lists the copies, from the catalog.
func (r *run) scratches(ctx context.Context) ([]scratch, error) {
	indexes, err := r.names(ctx, "list_indexes", outboxSchema+".outbox_events")
	if err != nil {
		return nil, err
	}
	var all []scratch
	var noIndexes []string
	for _, index := range indexes {
		drop := "DROP INDEX {schema}." + index
		all = append(all, scratch{name: "without " + index, changes: []string{drop}})
		noIndexes = append(noIndexes, drop)
	}
	all = append(all, scratch{name: fmt.Sprintf("without all %d", len(indexes)), changes: noIndexes})
	return append(all,
		scratch{name: "without the trigger that fills the lane", changes: []string{dropTrigger}},
		scratch{name: "without all of these", changes: append(noIndexes, dropTrigger)},
	), nil
}

func (r *run) names(ctx context.Context, list string, args ...any) ([]string, error) {
	rows, err := r.env.db.Control.Query(ctx, statement(list, ""), args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// costs is what the copies measured, with one event per transaction and with a hundred.
type costs struct {
	copies       []string
	one, hundred []bench.Sample
}

// measureCosts makes the copies and gives them their turns.
func (r *run) measureCosts(ctx context.Context) (*costs, error) {
	copies, err := r.scratches(ctx)
	if err != nil {
		return nil, err
	}
	one := func(schema string) func(*drivers) transaction {
		return func(d *drivers) transaction { return d.single(emitInto(schema)) }
	}
	hundred := func(schema string) func(*drivers) transaction {
		return func(d *drivers) transaction { return d.hundred(emitAllInto(schema)) }
	}
	ones := []maker{{shipped, one(outboxSchema)}, {shippedAgain, one(outboxSchema)}}
	hundreds := []maker{{shipped, hundred(outboxSchema)}, {shippedAgain, hundred(outboxSchema)}}
	found := &costs{}
	for i, changed := range copies {
		schema := fmt.Sprintf("scratch_%d", i)
		if err := r.copyOutbox(ctx, schema, changed.changes); err != nil {
			return nil, err
		}
		ones = append(ones, maker{changed.name, one(schema)})
		hundreds = append(hundreds, maker{changed.name, hundred(schema)})
		found.copies = append(found.copies, changed.name)
	}
	if err := r.env.db.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return nil, err
	}
	if found.one, err = r.interleave(ctx, costPhase(1), ones); err != nil {
		return nil, err
	}
	found.hundred, err = r.interleave(ctx, costPhase(manyEvents), hundreds)
	return found, err
}

// copyOutbox makes another outbox and changes it.
func (r *run) copyOutbox(ctx context.Context, schema string, changes []string) error {
	if err := r.env.install(ctx, schema, r.options.rows); err != nil {
		return err
	}
	for _, change := range changes {
		if err := r.env.db.Exec(ctx, strings.ReplaceAll(change, "{schema}", schema)); err != nil {
			return err
		}
	}
	return nil
}

// single is a transaction of one event and nothing else.
func (d *drivers) single(event func(context.Context, pgx.Tx, order) error) transaction {
	return func(ctx context.Context, client *bench.Client) error {
		return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return event(ctx, tx, d.w.order(client)) })
	}
}

// cpuPerTransaction is the server's CPU time, over all turns of these subjects.
func cpuPerTransaction(samples []bench.Sample, subjects ...string) time.Duration {
	var used time.Duration
	transactions := 0
	for _, s := range samples {
		if slices.Contains(subjects, s.Subject) {
			used += s.ServerCPU
			transactions += s.Transactions
		}
	}
	return used / time.Duration(max(transactions, 1))
}
