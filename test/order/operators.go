package order

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
)

// operators look after dead letters while the run goes on.
type operators struct {
	world  *world
	pool   *pgxpool.Pool
	desk   *relay.Operator
	folder string
	random *rand.Rand
	// seen are dead letters that were decided about; next is what arrived first after a skip or a discard.
	seen map[int64]bool
	next map[outbox.ID]uint64
	did  map[check.Verb]int
	// refused are actions that found their event in another state than its dead letter says.
	refused []string
}

// letter is a dead letter that waits for a decision.
type letter struct {
	Number   int64
	Event    outbox.ID
	Blocking bool
}

// actor is who the log of actions names.
const actor = "proof-order"

func newOperators(w *world, pool *pgxpool.Pool, plan Plan) *operators {
	return &operators{
		world: w, pool: pool, desk: relay.NewOperator(pool, outbox.DefaultSchema), folder: plan.Folder, random: rand.New(rand.NewPCG(plan.Seed, 1<<32)),
		seen: map[int64]bool{}, next: map[outbox.ID]uint64{}, did: map[check.Verb]int{},
	}
}

// run decides about every dead letter, until the context ends.
func (o *operators) run(ctx context.Context) error {
	for pause(ctx, 300*time.Millisecond) == nil {
		if err := o.round(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("order: an operator: %w", err)
		}
	}
	return nil
}

func (o *operators) round(ctx context.Context) error {
	rows, err := o.pool.Query(ctx, `SELECT d.id, d.event_id, d.blocking FROM outbox_dlq d
		WHERE NOT EXISTS (SELECT FROM outbox_actions a WHERE a.dlq_id = d.id) ORDER BY d.id`)
	if err != nil {
		return err
	}
	letters, err := pgx.CollectRows(rows, pgx.RowToStructByPos[letter])
	if err != nil {
		return err
	}
	for _, l := range letters {
		if o.seen[l.Number] {
			continue
		}
		o.seen[l.Number] = true
		if err := o.decide(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// decide redrives most of what blocks and skips or discards the rest. Of what does not block, some stays
// dead.
func (o *operators) decide(ctx context.Context, l letter) error {
	verb := check.Redrive
	switch n := o.random.IntN(10); {
	case l.Blocking && n < 3:
		verb = check.Skip
	case n < 4:
		verb = check.Discard
	case !l.Blocking && n < 7:
		return nil
	}
	if verb == check.Redrive {
		// Cured first, or it would die again at once.
		if err := os.WriteFile(filepath.Join(o.folder, curedFolder, l.Event.String()), nil, 0o600); err != nil {
			return fmt.Errorf("order: %w", err)
		}
	}
	arrived, err := o.world.arrivals(ctx)
	if err != nil {
		return err
	}
	o.next[l.Event] = arrived + 1
	o.did[verb]++
	return o.act(ctx, verb, l)
}

// act has the relay's operator do it.
func (o *operators) act(ctx context.Context, verb check.Verb, l letter) error {
	do := map[check.Verb]func(context.Context, relay.Action, ...outbox.ID) ([]relay.ActionResult, error){
		check.Redrive: o.desk.Redrive, check.Skip: o.desk.Skip, check.Discard: o.desk.Discard,
	}[verb]
	results, err := do(ctx, relay.Action{ID: outbox.NewID(), Actor: actor, Reason: "a proof"}, l.Event)
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Outcome != relay.ActionDone {
			o.refused = append(o.refused, fmt.Sprintf("%s of event %s, which has an open dead letter: %s, it was %s", verb, l.Event, result.Outcome, result.Was))
		}
	}
	return nil
}
