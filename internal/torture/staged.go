package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// The histories that whoever stages a run of their own writes, in the checker's words: what producers did, and
// what was done to the run, with its end.
const (
	ProducersFile = producersFile
	FaultsFile    = faultsFile
)

// Collect writes the other histories of a staged run: what arrived, what relays did, what the tables hold. It
// counts the settles that a relay takes for applied, and that no trigger saw: there must be none.
func (e *Env) Collect(ctx context.Context, folder string) (unwitnessed int, err error) {
	c := &collector{env: e, operators: &operators{}, folder: folder}
	if err := c.collect(ctx); err != nil {
		return 0, err
	}
	return c.unwitnessed, nil
}

// Arrivals is how many messages have arrived at the broker.
func (e *Env) Arrivals(ctx context.Context) (uint64, error) { return e.stage.arrivals(ctx) }

// ArrivalsOf is how many messages of these events have arrived, where we see what is delivered: copies of others may be
// on their way for long. Of a broker that tells what it has, known is false: all that has arrived is there.
func (e *Env) ArrivalsOf(events map[outbox.ID]bool) (messages uint64, known bool) {
	delivered, known := e.stage.(interface {
		arrivalsOf(events map[outbox.ID]bool) uint64
	})
	if !known {
		return 0, false
	}
	return delivered.arrivalsOf(events), true
}

// Registry has the contracts of the env's events, for relays that a staged run starts itself.
func (e *Env) Registry() (*outbox.Registry, error) { return e.contracts.registry() }

// Pipelined are the topics whose publisher keeps the order of several messages in flight, for [check.End].
func (e *Env) Pipelined() []string { return e.pipelined() }

// Producers are those of [Run], for a staged one.
type Producers struct{ of *producers }

// NewProducers makes the producers of an env. Of the plan they take Postgres, ProducersVia, Producers, Aggregates,
// Seed and Unsteady. Whoever made them must Close them.
func (e *Env) NewProducers(ctx context.Context, plan Plan, history *check.Writer) (*Producers, error) {
	pool, err := producersPool(ctx, plan)
	if err != nil {
		return nil, err
	}
	if err := e.fillThings(ctx, plan.Aggregates); err != nil {
		pool.Close()
		return nil, err
	}
	p := &producers{plan: plan, env: e, pool: pool, history: history}
	p.bell = outbox.NewDoorbell(outbox.RingPgx(pool, e.Run)) //nolint:contextcheck // it ends with Close
	return &Producers{of: p}, nil
}

// Write writes about so many events in that time, or as fast as it goes if it takes longer. It may be called again
// when it has returned.
func (p *Producers) Write(ctx context.Context, events int, over time.Duration) error {
	p.of.plan.Events, p.of.plan.Production = events, over
	p.of.claimed.Store(0)
	if err := p.of.run(ctx); err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	return nil
}

// Committed is how many events they know to be committed.
func (p *Producers) Committed() int { return int(p.of.committed.Load()) }

// Interrupted is how many transactions broke with their connection.
func (p *Producers) Interrupted() int { return int(p.of.interrupted.Load()) }

// Close lets the database go.
func (p *Producers) Close() {
	p.of.bell.Close()
	p.of.pool.Close()
}
