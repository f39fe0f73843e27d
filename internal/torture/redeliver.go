package torture

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// redelivery is what an operator asks for again, and perhaps thinks better of.
type redelivery struct {
	wanted, cancel operator.Action
	events         []outbox.ID
	how            operator.Redelivery
	asked          bool
	canceling      bool
}

// redeliver goes on with a redelivery, or begins one now and then: of the events that were published, some hundred that
// stand together, so that there is an order to keep. Every third is canceled. After an answer that got lost the same is
// sent again.
func (o *operators) redeliver(ctx context.Context) error {
	if !o.redelivers {
		return nil
	}
	if o.redelivery == nil {
		if o.random.IntN(4) > 0 {
			return nil
		}
		o.asking.Store(true) // before it is looked whether it may: see rest
		if o.draining.Load() {
			o.asking.Store(false)
			return nil
		}
		events, err := o.published(ctx)
		if err != nil || len(events) == 0 {
			o.asking.Store(false)
			return err
		}
		o.redelivery = &redelivery{
			wanted: operator.Action{ID: outbox.NewID(), Actor: actor, Reason: "a new consumer"},
			cancel: operator.Action{ID: outbox.NewID(), Actor: actor, Reason: "not that many"},
			events: events, how: operator.Redelivery{Rate: []float64{0, 100}[o.random.IntN(2)]},
			canceling: o.random.IntN(3) == 0,
		}
	}
	r := o.redelivery
	if !r.asked {
		results, err := o.operator.Redeliver(ctx, r.wanted, r.how, r.events...)
		if err != nil {
			return err
		}
		for _, result := range results {
			if result.Outcome != operator.Done && result.Outcome != operator.DoneBefore {
				o.unexpected = append(o.unexpected, fmt.Sprintf("a redelivery of event %s, which is published: %s, it was %s",
					result.Event, result.Outcome, result.Was))
			}
		}
		r.asked = true
		o.asking.Store(false)
		o.mu.Lock()
		o.did[check.Redeliver] += len(r.events)
		o.mu.Unlock()
		return nil // relays have the time until the next round
	}
	if r.canceling {
		_, left, err := o.operator.Cancel(ctx, r.cancel, r.wanted.ID)
		if err != nil || left > 0 {
			return err
		}
		arrived, err := o.env.stage.arrivals(ctx)
		if err != nil {
			return err
		}
		o.canceled[r.wanted.ID] = arrived + 1
	}
	o.redelivery = nil
	return nil
}

// rest has no redelivery begin any more, and tells whether none is being asked for: on a slow machine more copies would
// be asked for than are sent, and what is open would never become less; and what is asked for after the last look would
// be left open.
func (o *operators) rest() bool {
	o.draining.Store(true)
	return !o.asking.Load()
}

// published lists some events that stand together.
func (o *operators) published(ctx context.Context) ([]outbox.ID, error) {
	rows, err := o.env.Pool.Query(ctx, o.env.SQL(`SELECT e.id FROM {schema}.outbox_events e
		WHERE e.state = 6 AND e.seq > (SELECT max(m.seq) * $1::double precision FROM {schema}.outbox_events m)
		ORDER BY e.seq LIMIT 100`), o.random.Float64())
	if err != nil {
		return nil, fmt.Errorf("published events: %w", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[outbox.ID])
	if err != nil {
		return nil, fmt.Errorf("published events: %w", err)
	}
	return events, nil
}
