package refused

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

func first(ctx context.Context, pool *pgxpool.Pool, event outbox.ID) (bool, error) {
	return inbox.First(ctx, pool, "mailer", event)
}
