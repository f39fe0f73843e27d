package accepted

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

func firstPgx(ctx context.Context, tx pgx.Tx, event outbox.ID) (bool, error) {
	return inbox.First(ctx, tx, "mailer", event)
}

func firstPool(ctx context.Context, tx *pgxpool.Tx, event outbox.ID) (bool, error) {
	return inbox.First(ctx, outbox.InSchema(tx, "billing"), "mailer", event)
}

func firstSQL(ctx context.Context, tx *sql.Tx, event outbox.ID) (bool, error) {
	return inbox.FirstSQL(ctx, tx, "mailer", event)
}

func firstSqlx(ctx context.Context, tx *sqlx.Tx, event outbox.ID) (bool, error) {
	return inbox.FirstSQL(ctx, tx, "mailer", event)
}

// Any UUID type is an event's id by conversion.
func firstUUID(ctx context.Context, tx pgx.Tx, event [16]byte) (bool, error) {
	return inbox.First(ctx, tx, "mailer", event)
}
