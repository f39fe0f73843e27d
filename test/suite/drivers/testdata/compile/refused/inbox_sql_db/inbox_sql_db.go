package refused

import (
	"context"
	"database/sql"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

func first(ctx context.Context, db *sql.DB, event outbox.ID) (bool, error) {
	return inbox.FirstSQL(ctx, db, "mailer", event)
}
