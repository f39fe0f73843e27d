package growth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

type body struct{}

const (
	bulkTopic   = "bulk"
	slowTopic   = "slow"
	canaryTopic = "canary"
)

var (
	canary = outbox.Define[body](outbox.Contract{Type: "canary", Aggregate: "thing", Topic: canaryTopic})
	slow   = outbox.Define[body](outbox.Contract{Type: "slow", Aggregate: "thing", Topic: slowTopic})
)

// watch is the broker of a run, and whoever reads the relay's log.
type watch struct {
	state     state
	began     time.Time
	delivered chan outbox.ID
	tried     atomic.Int64 // of the slow topic
	slow      atomic.Int64 // carried by it
	failed    atomic.Int64 // calls of the database
	alarms    atomic.Int64

	mutex   sync.Mutex
	details []string
}

// failuresOfTheSlow is how often the slow topic refuses before it carries: enough for the relay to pause it.
const failuresOfTheSlow = 8

func (w *watch) publish(ctx context.Context, message *publish.Message) error {
	switch message.Topic {
	case bulkTopic:
		if w.state.bulkDown {
			return &publish.TopicError{Err: errors.New("the topic is down")}
		}
	case slowTopic:
		if w.state.slowDown && w.tried.Add(1) <= failuresOfTheSlow {
			return &publish.TopicError{Err: errors.New("the topic is down")}
		}
		w.slow.Add(1)
	case canaryTopic:
		select {
		case w.delivered <- message.ID:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (w *watch) observe(step relay.Step) {
	switch step.Kind {
	case relay.StepFail:
		w.failed.Add(1)
	case relay.StepAlarm:
		w.alarms.Add(1)
	default:
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.details) < 5 {
		w.details = append(w.details, fmt.Sprintf("%s %s: %s", step.Kind, step.Call, step.Detail))
	}
}

// trouble is what the relay has said first.
func (w *watch) trouble() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return fmt.Sprintf("%q", w.details)
}

// carry emits an event of each of these aggregates, and waits until all have arrived.
func (w *watch) carry(ctx context.Context, db *bench.Outbox, aggregates []string) error {
	events := make([]outbox.Event, len(aggregates))
	missing := map[outbox.ID]bool{}
	for i, aggregate := range aggregates {
		events[i] = canary.New(aggregate, body{})
		events[i].ID = outbox.NewID()
		missing[events[i].ID] = true
	}
	err := pgx.BeginFunc(ctx, db.Producers, func(tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, tx, events...)
		return err
	})
	if err != nil {
		return fmt.Errorf("emit: %w", err)
	}
	if err := outbox.RingPgx(db.Producers, outbox.DefaultSchema)(ctx); err != nil {
		return fmt.Errorf("ring: %w", err)
	}
	for deadline := time.After(hung); len(missing) > 0; {
		select {
		case id := <-w.delivered:
			delete(missing, id)
		case <-deadline:
			return fmt.Errorf("%d of %d events have not arrived after %s", len(missing), len(events), hung)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// through tells whether the relay has gone through the state.
func (w *watch) through(ctx context.Context, db *bench.Outbox, rows int) (bool, error) {
	switch w.state.name {
	case "backlog", "backlog_open":
		return w.slow.Load() >= int64(rows/types), nil
	case "names":
		var parked int
		err := db.Control.QueryRow(ctx, "SELECT count(*) FROM public.outbox_held WHERE kind = 2").Scan(&parked)
		return parked >= rows, err
	default:
		return true, nil
	}
}
