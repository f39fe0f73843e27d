// Package migrations installs the marketplace's tables: the API's with their outbox, the workers' with their inbox.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/schema"
)

//go:embed shop/*.sql worker/*.sql
var files embed.FS

// Shop installs what the API and the publisher need, and makes the database refuse events that are not in the registry.
func Shop(ctx context.Context, db *sql.DB) error {
	if err := schema.Outbox.Up(ctx, db, schema.Options{}); err != nil {
		return err
	}
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, registry.RejectUnknownSQL("public")); err != nil {
		return fmt.Errorf("refuse unknown event types: %w", err)
	}
	return up(ctx, db, "shop")
}

// Worker installs what the consumers need. It may be another database than the API's: it gets no outbox.
func Worker(ctx context.Context, db *sql.DB) error {
	if err := schema.Inbox.Up(ctx, db, schema.Options{}); err != nil {
		return err
	}
	return up(ctx, db, "worker")
}

// up runs the files of a folder that were not run before. Real applications have a tool for this, such as goose, which
// also takes the files of package schema.
func up(ctx context.Context, db *sql.DB, folder string) error {
	names, err := fs.Glob(files, folder+"/*.sql") // sorted
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	const prepare = `SELECT pg_advisory_xact_lock(hashtext('marketplace migrations'));
		CREATE TABLE IF NOT EXISTS marketplace_migrations (name text PRIMARY KEY, 
		applied_at timestamptz NOT NULL DEFAULT now())`
	if _, err := tx.ExecContext(ctx, prepare); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	for _, name := range names {
		if err := apply(ctx, tx, name); err != nil {
			return fmt.Errorf("migrations: %s: %w", name, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}

func apply(ctx context.Context, tx *sql.Tx, name string) error {
	result, err := tx.ExecContext(ctx, "INSERT INTO marketplace_migrations (name) VALUES ($1) ON CONFLICT DO NOTHING",
		name)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the file
	}
	if fresh, err := result.RowsAffected(); err != nil || fresh == 0 {
		return err //nolint:wrapcheck // as above
	}
	text, err := files.ReadFile(name)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}
	_, err = tx.ExecContext(ctx, string(text))
	return err //nolint:wrapcheck // as above
}
