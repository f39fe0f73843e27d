package refused

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, conn *sqlx.Conn, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, conn, event)
	return err
}
