package refused

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, db *bun.DB, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, db, event)
	return err
}
