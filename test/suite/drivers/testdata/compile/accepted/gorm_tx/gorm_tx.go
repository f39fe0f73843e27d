package accepted

import (
	"context"

	"gorm.io/gorm"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, tx *gorm.DB, event outbox.Event) error {
	_, err := outbox.EmitGORM(ctx, tx.Statement.ConnPool, event)
	return err
}
