package refused

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, conn *pgx.Conn, event outbox.Event) error {
	_, err := outbox.Emit(ctx, conn, event)
	return err
}
