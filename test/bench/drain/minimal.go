package drain

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Minimal is the smallest loop there can be, on a table of its own with three columns and one index: what any outbox in
// PostgreSQL pays at least.
type Minimal struct {
	Env   *Env
	Batch int
}

func (Minimal) reads() string { return "ORDER BY seq LIMIT" }

func (m Minimal) drain(ctx context.Context, to sender, settled func() error) error {
	conn, err := m.Env.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	read, settle := statement("minimal_read"), statement("minimal_settle")
	numbers := make([]int64, 0, m.Batch)
	for last := int64(0); ; {
		rows, err := conn.Query(ctx, read, last, m.Batch)
		if err != nil {
			return fmt.Errorf("drain: read: %w", err)
		}
		batch := make([]stored, 0, m.Batch)
		one := stored{aggregateID: accountID(0)} // there is one order, that of the table
		if _, err := pgx.ForEachRow(rows, []any{&one.seq, &one.payload}, func() error {
			batch = append(batch, one)
			one.payload = nil
			return nil
		}); err != nil {
			return fmt.Errorf("drain: read: %w", err)
		}
		if len(batch) == 0 {
			return settled()
		}
		if err := publishAll(ctx, to, batch); err != nil {
			return err
		}
		numbers = numbers[:0]
		for i := range batch {
			numbers = append(numbers, batch[i].seq)
		}
		if _, err := conn.Exec(ctx, settle, numbers); err != nil {
			return fmt.Errorf("drain: settle: %w", err)
		}
		last = batch[len(batch)-1].seq
	}
}
