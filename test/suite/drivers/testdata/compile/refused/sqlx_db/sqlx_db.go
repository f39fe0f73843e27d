package refused

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, db *sqlx.DB, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, db, event)
	return err
}
