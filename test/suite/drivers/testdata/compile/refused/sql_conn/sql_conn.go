package refused

import (
	"context"
	"database/sql"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, conn *sql.Conn, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, conn, event)
	return err
}
