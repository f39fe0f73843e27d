package minutes

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Write writes what is over, as Run does now and then.
func (w *Writer) Write(ctx context.Context, pool *pgxpool.Pool) { w.write(ctx, pool, farewell) }
