package torture

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
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

// broken counts the events of those whose business row is not there in the end.
func (p *promises) broken(ctx context.Context, w *World) (events int, err error) {
	rows, err := w.Pool.Query(ctx, w.SQL("SELECT key FROM {schema}.torture_done"))
	if err != nil {
		return 0, fmt.Errorf("torture: %w", err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("torture: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range kept {
		delete(p.events, key)
	}
	for _, n := range p.events {
		events += n
	}
	return events, nil
}
