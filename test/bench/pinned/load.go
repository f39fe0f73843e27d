package pinned

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
)

// body is the data of every event.
type body struct {
	Filler string `json:"filler"`
}

// moved is the contract of all events.
func moved() *outbox.ContractFor[body] {
	return outbox.Define[body](outbox.Contract{Type: "thing_moved", Aggregate: "thing", Topic: "moved"})
}

// load is an open loop: transaction n begins at its time, however long the others take. Every worker has
// aggregates of its own, so that the order of an aggregate's events is that of their numbers.
type load struct {
	plan Plan
	pool *pgxpool.Pool
	bell *outbox.Doorbell
	tape *tape
}

// run produces all transactions of the tape.
func (l *load) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for worker := range l.plan.Workers {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(l.tape.phase), uint64(worker)))
			for n := worker; n < len(l.tape.late); n += l.plan.Workers {
				if err := l.transaction(ctx, random, worker, n); err != nil {
					return fmt.Errorf("pinned: a producer: %w", err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (l *load) transaction(ctx context.Context, random *rand.Rand, worker, n int) error {
	due := l.tape.began.Add(time.Duration(n) * time.Second * time.Duration(l.plan.PerTx) / time.Duration(l.plan.Rate))
	if err := wait.For(ctx, time.Until(due)); err != nil {
		return err
	}
	contract := moved()
	events := make([]outbox.Event, l.plan.PerTx)
	for i := range events {
		aggregate := random.IntN(l.plan.Aggregates/l.plan.Workers)*l.plan.Workers + worker
		events[i] = contract.New(fmt.Sprintf("%s%d", movingThing, aggregate), body{Filler: filler})
		events[i].ID = l.tape.id(n*l.plan.PerTx + i)
	}
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, tx, events...)
		return err
	})
	if err != nil {
		return err
	}
	at := l.tape.since()
	for i := range events {
		l.tape.committed[n*l.plan.PerTx+i].Store(at)
	}
	l.tape.late[n] = time.Since(due)
	l.bell.Ring()
	return nil
}

// filler makes a payload of about 256 bytes.
var filler = strings.Repeat("x", 130)
