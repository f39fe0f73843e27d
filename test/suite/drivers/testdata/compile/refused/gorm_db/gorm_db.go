package refused

import (
	"context"

	"gorm.io/gorm"

	"github.com/posthaste-dev/posthaste/outbox"
)

func emit(ctx context.Context, db *gorm.DB, event outbox.Event) error {
	_, err := outbox.EmitSQL(ctx, db, event)
	return err
}
