package torture

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// promises are the transactions that a forgetful database has acknowledged, each with the number of its events.
type promises struct {
	mu     sync.Mutex
	events map[string]int
}

func (p *promises) add(key string, events int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events == nil {
		p.events = map[string]int{}
	}
	p.events[key] = events
}

// broken counts the events of those whose business row is not there.
func (p *promises) broken(ctx context.Context, env *Env) (events int, err error) {
	p.mu.Lock()
	made := maps.Clone(p.events) // before the rows are read: what is promised later is not missed
	p.mu.Unlock()
	rows, err := env.Pool.Query(ctx, env.SQL("SELECT key FROM {schema}.torture_done"))
	if err != nil {
		return 0, fmt.Errorf("torture: %w", err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("torture: %w", err)
	}
	for _, key := range kept {
		delete(made, key)
	}
	for _, n := range made {
		events += n
	}
	return events, nil
}

// Vanished is how many events the database has acknowledged and lost so far.
func (t *Target) Vanished(ctx context.Context) (int, error) {
	return t.producers.promised.broken(ctx, t.Env)
}

// Phantoms is how many messages have arrived so far whose events the database does not have. It reads all messages,
// which can be done more than once on NATS alone.
func (t *Target) Phantoms(ctx context.Context) (phantoms int, err error) {
	arrived, _, err := t.Env.stage.deliveries(ctx, nil)
	if err != nil {
		return 0, err
	}
	ids := make([]outbox.ID, len(arrived))
	for i, d := range arrived {
		ids[i] = d.ID
	}
	err = t.Env.Pool.QueryRow(ctx, t.Env.SQL(`SELECT count(*) FROM unnest($1::uuid[]) a(id)
		WHERE NOT EXISTS (SELECT FROM {schema}.outbox_events e WHERE e.id = a.id)`), ids).Scan(&phantoms)
	if err != nil {
		return 0, fmt.Errorf("torture: look for phantoms: %w", err)
	}
	return phantoms, nil
}
