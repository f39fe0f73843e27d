package drain

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Statement is what a statement cost since the counters were reset.
type Statement struct {
	Calls, Rows    int64
	Time           time.Duration
	Buffers, Bytes int64 // shared buffers that were hit, and WAL
	Text           string
}

// Statements are the costliest ones since then, ours included.
func (w *Env) Statements(ctx context.Context) ([]Statement, error) {
	rows, err := w.DB.Control.Query(ctx, statement("statements"))
	if err != nil {
		return nil, fmt.Errorf("drain: statements: %w", err)
	}
	var all []Statement
	var one Statement
	var milliseconds float64
	_, err = pgx.ForEachRow(rows, []any{&one.Calls, &one.Rows, &milliseconds, &one.Buffers, &one.Bytes, &one.Text},
		func() error {
			one.Time = time.Duration(milliseconds * float64(time.Millisecond))
			all = append(all, one)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("drain: statements: %w", err)
	}
	return all, nil
}
