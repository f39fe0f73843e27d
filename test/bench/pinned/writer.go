package pinned

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
)

// writer is a transaction that wrote an event and stays open.
type writer struct {
	run *run
	pin *pin
	// first is its own event, second one of the same aggregate that is written after its commit.
	first, second outbox.ID
}

// Own is what became of the events of the open writer's aggregate.
type Own struct {
	// Early were delivered before the writer committed.
	Early int
	// Order is the order in which they arrived: 1 is the writer's own, 2 was written after its commit.
	Order []int
	// Wait is from the commit's return to the delivery of the writer's own event.
	Wait time.Duration
}

// InOrder tells whether both arrived, once and in order, and none too early.
func (o Own) InOrder() bool {
	return o.Early == 0 && len(o.Order) == 2 && o.Order[0] == 1 && o.Order[1] == 2
}

// open writes the event.
func (w *writer) open(ctx context.Context) error {
	var err error
	if w.pin, err = w.run.db.begin(ctx, pgx.ReadCommitted); err != nil {
		return err
	}
	w.first, err = emitHeld(ctx, w.pin.tx)
	return err
}

func emitHeld(ctx context.Context, tx pgx.Tx) (outbox.ID, error) {
	receipts, err := outbox.Emit(ctx, tx, moved().New(heldThing, body{Filler: filler}))
	if err != nil {
		return outbox.ID{}, err
	}
	return receipts[0].ID, nil
}

// finish commits, writes one more event, and looks at what arrives.
func (w *writer) finish(ctx context.Context, t *tape) (Own, error) {
	o := Own{Early: len(t.ofWriter())}
	if err := w.pin.tx.Commit(ctx); err != nil {
		return o, err
	}
	committed := time.Now()
	err := pgx.BeginFunc(ctx, w.run.db.Producers, func(tx pgx.Tx) (err error) {
		w.second, err = emitHeld(ctx, tx)
		return err
	})
	if err != nil {
		return o, err
	}
	for deadline := time.Now().Add(hung); len(t.ofWriter()) < 2 && time.Now().Before(deadline); {
		if err := wait.For(ctx, 10*time.Millisecond); err != nil {
			return o, err
		}
	}
	for _, arrived := range t.ofWriter() {
		switch arrived.id {
		case w.first:
			o.Order = append(o.Order, 1)
			o.Wait = arrived.at.Sub(committed)
		case w.second:
			o.Order = append(o.Order, 2)
		}
	}
	return o, nil
}

func (w *writer) close() error {
	if w.pin == nil {
		return nil
	}
	return w.pin.close()
}
