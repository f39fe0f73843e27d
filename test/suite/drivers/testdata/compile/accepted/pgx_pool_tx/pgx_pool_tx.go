package accepted

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, tx *pgxpool.Tx, event outbox.Event) error {
	_, err := outbox.Emit(ctx, tx, event)
	return err
}
