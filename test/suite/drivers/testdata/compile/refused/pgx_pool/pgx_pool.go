package refused

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, pool *pgxpool.Pool, event outbox.Event) error {
	_, err := outbox.Emit(ctx, pool, event)
	return err
}
