package accepted

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, tx bun.Tx, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, tx.Tx, event)
	return err
}
