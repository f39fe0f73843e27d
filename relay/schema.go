package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/relay/internal/clean"
)

// schemaVersion is the oldest schema that this relay works with.
const schemaVersion = 6

// errHidden: the relay would see no work, and nobody would see why.
var errHidden = errors.New("relay: row level security hides events from this role; give it a policy: " +
	"CREATE POLICY relay ON outbox_events FOR ALL TO <role> USING (true)")

// checkSchema waits for the database and refuses what waiting does not repair.
func (s *shell) checkSchema(ctx context.Context, pool *pgxpool.Pool) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		err := s.checkOnce(ctx, pool)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // the relay was asked to stop: that is no error
		}
		if refusal := (*schemaError)(nil); errors.As(err, &refusal) || errors.Is(err, errHidden) {
			return err
		}
		s.relay.config.Logger.ErrorContext(ctx, "the database cannot be used yet", slog.String("error", clean.Error(err)))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// schemaError is a schema that this relay cannot work with.
type schemaError struct {
	schema string
	found  int
}

func (e *schemaError) Error() string {
	if e.found == 0 {
		return fmt.Sprintf("relay: there is no outbox in schema %q, or this role may not see it: run `outboxctl migrate up` and `outboxctl grant relay <role>`", e.schema)
	}
	return fmt.Sprintf("relay: the outbox in schema %q has version %d, this relay needs %d: run `outboxctl migrate up`", e.schema, e.found, schemaVersion)
}

func (s *shell) checkOnce(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, s.relay.config.Lease/3)
	defer cancel()
	schema := s.relay.config.Schema
	var version int
	err := pool.QueryRow(ctx, `SELECT schema_version FROM `+pgx.Identifier{schema, "outbox_meta"}.Sanitize()).Scan(&version)
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && (refused.Code == "42P01" || refused.Code == "3F000" || refused.Code == "42501") {
		return &schemaError{schema: schema}
	}
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if version < schemaVersion {
		return &schemaError{schema: schema, found: version}
	}
	var hidden bool
	err = pool.QueryRow(ctx, `SELECT pg_catalog.row_security_active($1::text) AND NOT EXISTS (
	    SELECT FROM pg_catalog.pg_policies p WHERE p.schemaname = $2 AND p.tablename = 'outbox_events' AND p.qual = 'true' AND p.cmd IN ('ALL', 'SELECT')
	       AND EXISTS (SELECT FROM pg_catalog.unnest(p.roles) r(name) WHERE r.name = 'public' OR pg_catalog.pg_has_role(r.name, 'MEMBER')))`,
		pgx.Identifier{schema, "outbox_events"}.Sanitize(), schema).Scan(&hidden)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if hidden {
		return errHidden
	}
	return nil
}
