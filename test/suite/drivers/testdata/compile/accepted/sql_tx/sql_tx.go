package accepted

import (
	"context"
	"database/sql"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, tx *sql.Tx, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, tx, event)
	return err
}
