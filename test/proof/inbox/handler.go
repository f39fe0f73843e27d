package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/outbox"
)

var errPlanned = errors.New("this event is to fail")

// worker is a process at work.
type worker struct {
	task    task
	journal *journal
	pool    *pgxpool.Pool
	guard   *redisinbox.Guard
	tried   sync.Map
}

// firstTry tells whether this process has not tried the event before.
func (w *worker) firstTry(id outbox.ID) bool {
	_, tried := w.tried.LoadOrStore(id, true)
	return !tried
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// effect takes as long as the event says, and writes a row that nothing keeps from being there twice.
func (w *worker) effect(ctx context.Context, on execer, e *consumer.Event) error {
	var b body
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return consumer.Poison(err)
	}
	if w.task.Heedless {
		ctx = context.WithoutCancel(ctx)
	}
	work := time.NewTimer(b.Takes)
	defer work.Stop()
	select {
	case <-work.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if b.Kind == broken {
		return consumer.Poison(errPlanned)
	}
	// Deliveries to processes that died count as attempts, so the last of them must not be the one that fails.
	bad := b.Kind == poison || b.Kind == fails && e.Attempt < w.task.MaxAttempts && w.firstTry(e.ID)
	if _, inTransaction := on.(pgx.Tx); !inTransaction {
		// What has happened outside cannot be taken back, and an insert that is given up may have happened.
		if bad {
			return errPlanned
		}
		ctx = context.WithoutCancel(ctx)
	}
	_, err := on.Exec(ctx,
		"INSERT INTO "+w.task.Schema+".effects (consumer, event_id, worker) VALUES ($1::text, $2::text::uuid, $3::text)",
		w.task.Consumer, e.ID.String(), w.task.Name)
	switch {
	case err != nil:
		return fmt.Errorf("effect: %w", err)
	case bad:
		return errPlanned
	}
	crash.Point("effect.after")
	return nil
}

// inPostgres has the mark and the effect in one transaction.
func (w *worker) inPostgres(ctx context.Context, e *consumer.Event) error {
	return outbox.InTx(ctx, w.pool, func(ctx context.Context, tx pgx.Tx) error {
		first, err := inbox.First(ctx, outbox.InSchema(tx, w.task.Schema), w.task.Consumer, e.ID)
		if err != nil {
			return err
		}
		if !first {
			return consumer.ErrDuplicate
		}
		return w.effect(ctx, tx, e)
	})
}

// effectAlone is an effect that no transaction holds together with a mark, as a mail or a call of another service is.
func (w *worker) effectAlone(ctx context.Context, e *consumer.Event) error {
	return w.effect(ctx, w.pool, e)
}

// oneCall marks before the effect, and takes the mark back when that fails.
func (w *worker) oneCall(ctx context.Context, e *consumer.Event) error {
	already, err := w.guard.CheckAndMarkProcessed(ctx, w.task.Consumer, e.ID, 0)
	if err != nil {
		return &consumer.DelayError{After: time.Second, Err: err}
	}
	if already {
		return consumer.ErrDuplicate
	}
	if err := w.effect(ctx, w.pool, e); err != nil {
		return errors.Join(err, w.guard.Delete(context.WithoutCancel(ctx), w.task.Consumer, e.ID))
	}
	return nil
}

// apart is the misuse of fault I16: the mark commits before the effect.
func (w *worker) apart(ctx context.Context, e *consumer.Event) error {
	first := false
	err := outbox.InTx(ctx, w.pool, func(ctx context.Context, tx pgx.Tx) (err error) {
		first, err = inbox.First(ctx, outbox.InSchema(tx, w.task.Schema), w.task.Consumer, e.ID)
		return err
	})
	if err == nil && !first {
		err = consumer.ErrDuplicate
	}
	if err != nil {
		return err
	}
	return w.effect(ctx, w.pool, e)
}
