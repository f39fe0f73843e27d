package drain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// RowLease drains the way most queues in PostgreSQL do: it writes a lease into every row that it takes,
// with FOR UPDATE SKIP LOCKED over a partial index, and a second time when it settles. The next batch is
// claimed on a connection of its own while the last one is published and settled.
type RowLease struct {
	Env   *Env
	Batch int
}

const leaseHolder = "row-lease-loop"

func (RowLease) reads() string { return "SKIP LOCKED" }

func (l RowLease) drain(ctx context.Context, to sender, settled func() error) error {
	claimer, err := l.Env.Connect(ctx)
	if err != nil {
		return err
	}
	defer claimer.Close(ctx)
	settler, err := l.Env.Connect(ctx)
	if err != nil {
		return err
	}
	defer settler.Close(ctx)
	settle := statement("lease_settle")
	next := <-l.ahead(ctx, claimer)
	for next.err == nil && len(next.batch) > 0 {
		batch := next.batch
		ahead := l.ahead(ctx, claimer)
		err := publishAll(ctx, to, batch)
		if err == nil {
			_, err = settler.Exec(ctx, settle, ids(batch), leaseHolder)
		}
		next = <-ahead
		if err != nil {
			return fmt.Errorf("drain: row lease: %w", err)
		}
	}
	if next.err != nil {
		return next.err
	}
	return settled()
}

func (l RowLease) ahead(ctx context.Context, conn *pgx.Conn) <-chan readAhead {
	answer := make(chan readAhead, 1)
	go func() {
		batch, err := l.claim(ctx, conn)
		answer <- readAhead{batch, err}
	}()
	return answer
}

func (l RowLease) claim(ctx context.Context, conn *pgx.Conn) ([]stored, error) {
	rows, err := conn.Query(ctx, statement("lease_claim"), leaseHolder, l.Batch)
	if err != nil {
		return nil, fmt.Errorf("drain: claim: %w", err)
	}
	batch, err := collect(rows, l.Batch)
	// RETURNING has the order of the join.
	slices.SortFunc(batch, func(a, b stored) int { return cmp.Compare(a.seq, b.seq) })
	return batch, err
}
