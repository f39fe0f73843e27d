package accepted

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, tx *sqlx.Tx, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, tx, event)
	return err
}
