package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// What does not vary is counted once, with one client: bytes of WAL and round trips.

// walOf runs a subject this many times after a checkpoint and returns what it wrote.
func (r *run) walOf(ctx context.Context, run transaction, times int) (bench.WAL, error) {
	client := &bench.Client{Rand: rand.New(rand.NewPCG(seed, 1))}
	if err := r.env.db.Checkpoint(ctx); err != nil {
		return bench.WAL{}, err
	}
	return r.wal.Measure(ctx, func(ctx context.Context) error {
		for range times {
			if err := run(ctx, client); err != nil {
				return err
			}
		}
		return nil
	})
}

// countWAL measures these subjects.
func (r *run) countWAL(ctx context.Context, names []string, times int) (map[string]bench.WAL, error) {
	d, err := r.env.open(ctx, "bench-wal", 1)
	if err != nil {
		return nil, err
	}
	defer d.close()
	all, counted := d.subjects(), map[string]bench.WAL{}
	for _, name := range names {
		if counted[name], err = r.walOf(ctx, all[name], times); err != nil {
			return nil, fmt.Errorf("WAL of %s: %w", name, err)
		}
	}
	return counted, nil
}

// trips are the round trips of the event's statement, the first time on a connection and later.
type trips struct {
	subject      string
	first, later int
}

// countTrips counts the round trips of the statement that writes the events, without BEGIN and COMMIT.
func (r *run) countTrips(ctx context.Context) ([]trips, error) {
	one := func(event func(context.Context, pgx.Tx, order) error) func(context.Context, pgx.Tx, []order) error {
		return func(ctx context.Context, tx pgx.Tx, orders []order) error { return event(ctx, tx, orders[0]) }
	}
	var counted []trips
	for _, subject := range []struct {
		name  string
		write func(context.Context, pgx.Tx, []order) error
	}{
		{bare, one(bareInsert)},
		{emitOne, one(emitEvent)},
		{emitKeyed, one(emitKeyedEvent)},
		{emitMany, emitEvents},
		{emitManyKeyed, emitKeyedEvents},
		{emitFunction, one(emitByFunction)},
	} {
		found, err := r.tripsOf(ctx, subject.write)
		if err != nil {
			return nil, fmt.Errorf("round trips of %s: %w", subject.name, err)
		}
		found.subject = subject.name
		counted = append(counted, found)
	}
	return counted, nil
}

func (r *run) tripsOf(ctx context.Context, write func(context.Context, pgx.Tx, []order) error) (trips, error) {
	var counter bench.RoundTrips
	pool, err := r.env.db.Pool(ctx, "bench-trips", 1)
	if err != nil {
		return trips{}, err
	}
	config := pool.Config()
	pool.Close()
	config.ConnConfig.DialFunc = counter.Dial
	if pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return trips{}, err
	}
	defer pool.Close()
	client := &bench.Client{Rand: rand.New(rand.NewPCG(seed, 2))}
	var found trips
	for range 3 {
		orders := make([]order, manyEvents)
		for i := range orders {
			orders[i] = r.env.order(client)
		}
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			before := counter.Count()
			err := write(ctx, tx, orders)
			found.later = counter.Count() - before
			return err
		})
		if err != nil {
			return trips{}, err
		}
		if found.first == 0 {
			found.first = found.later
		}
	}
	return found, nil
}
