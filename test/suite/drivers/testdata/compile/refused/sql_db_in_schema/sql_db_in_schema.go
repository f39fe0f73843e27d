package refused

import (
	"context"
	"database/sql"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, db *sql.DB, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, outbox.InSchemaSQL(db, "billing"), event)
	return err
}
