package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// SchemaVersion is the oldest schema that this relay works with.
const SchemaVersion = 9

// errHidden: the relay would see no work, and nobody would see why.
var errHidden = errors.New("relay: row level security hides events from this role; give it a policy: " +
	"CREATE POLICY relay ON outbox_events FOR ALL TO <role> USING (true)")

// lackingQuery finds what migrations since the seventh have added to the rights of a relay: $1 is the schema. A role
// that was granted before them lacks it, and would notice at the first pause or the first publish that fails.
const lackingQuery = `SELECT current_user::text, coalesce(pg_catalog.string_agg(
	    w.privilege || ' on ' || w.name, ', ' ORDER BY w.name, w.privilege), '')
	  FROM (VALUES ('outbox_pauses', 'SELECT', '{}'::text[]),
	    ('outbox_limits', 'SELECT', '{}'),
	    ('outbox_attempts', 'SELECT', '{event_id,number}'),
	    ('outbox_attempts', 'INSERT', '{event_id,number,relay,class,topic,error}'),
	    ('outbox_attempts', 'DELETE', '{}'),
	    ('outbox_minutes', 'SELECT', '{minute,topic,relay}'),
	    ('outbox_minutes', 'INSERT', '{}'),
	    ('outbox_minutes', 'DELETE', '{}'),
	    ('outbox_requests', 'UPDATE', '{taken_by,taken}')) w(name, privilege, columns)
	 WHERE CASE WHEN w.columns = '{}'
	       THEN NOT pg_catalog.has_table_privilege($1::text || '.' || w.name, w.privilege)
	       ELSE EXISTS (SELECT FROM pg_catalog.unnest(w.columns) c(name)
	         WHERE NOT pg_catalog.has_column_privilege($1::text || '.' || w.name, c.name, w.privilege)) END`

// errOtherOutbox: the URL leads to somebody else's outbox.
var errOtherOutbox = errors.New("this is another outbox than the one that was named")

// checkSchema waits for the database, and fails where waiting does not repair it.
func (r *Relay) checkSchema(ctx context.Context, pool *pgxpool.Pool) error {
	return r.untilUsable(ctx, func(ctx context.Context) (wait time.Duration, err error) {
		err = r.checkOnce(ctx, pool)
		if wrong := (*schemaError)(nil); errors.As(err, &wrong) || errors.Is(err, errHidden) ||
			errors.Is(err, errOtherOutbox) {
			return 0, err
		}
		if err != nil {
			return untilPatient, err
		}
		return 0, nil
	})
}

// untilPatient leaves it to untilUsable how long to wait.
const untilPatient = -1

// untilUsable tries until there is nothing to wait for: an answer without a wait is the last. The relay may be asked
// to stop meanwhile; that is no error.
func (r *Relay) untilUsable(ctx context.Context, try func(context.Context) (wait time.Duration, err error)) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		r.pulse.beat()
		wait, err := try(ctx)
		r.pulse.beat()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // as said
		}
		if wait == 0 {
			return err
		}
		if wait == untilPatient {
			r.config.Logger.ErrorContext(ctx, "the database cannot be used yet", slog.String("error", clean.Error(err)))
			wait = pause
		}
		timer := time.NewTimer(wait)
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
		return fmt.Sprintf("relay: there is no outbox in schema %q, or this role may not see it: run `outboxctl migrate "+
			"up` and `outboxctl grant relay <role>`", e.schema)
	}
	return fmt.Sprintf("relay: the outbox in schema %q has version %d, this relay needs %d: run `outboxctl migrate up`",
		e.schema, e.found, SchemaVersion)
}

func (r *Relay) checkOnce(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Lease/3)
	defer cancel()
	schema := r.config.Schema
	var version int
	var installation string
	err := pool.QueryRow(ctx,
		`SELECT schema_version, installation::text FROM `+pgx.Identifier{schema, "outbox_meta"}.Sanitize()).Scan(&version,
		&installation)
	switch sqlstate.Of(err) {
	case sqlstate.UndefinedTable, sqlstate.InvalidSchemaName, sqlstate.InsufficientPrivilege:
		return &schemaError{schema: schema}
	}
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if want := r.config.Installation; want != "" && !strings.EqualFold(want, installation) {
		return fmt.Errorf("relay: %w: its installation is %s, and not %s; is it the right database?", errOtherOutbox,
			installation, want)
	}
	if version < SchemaVersion {
		return &schemaError{schema: schema, found: version}
	}
	var role, lacking string
	if err := pool.QueryRow(ctx, lackingQuery, pgx.Identifier{schema}.Sanitize()).Scan(&role, &lacking); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if lacking != "" { // it is waited out: somebody will grant it
		return fmt.Errorf("relay: the role lacks %s: run `outboxctl grant relay %s` again after the migration", lacking, role)
	}
	var hidden bool
	err = pool.QueryRow(ctx, `SELECT pg_catalog.row_security_active($1::text) AND NOT EXISTS (
	    SELECT FROM pg_catalog.pg_policies p WHERE p.schemaname = $2 AND p.tablename = 'outbox_events' AND p.qual = 'true' 
	    AND p.cmd IN ('ALL', 'SELECT')
	       AND EXISTS (SELECT FROM pg_catalog.unnest(p.roles) r(name) WHERE r.name = 'public' 
	       OR pg_catalog.pg_has_role(r.name, 'MEMBER')))`,
		pgx.Identifier{schema, "outbox_events"}.Sanitize(), schema).Scan(&hidden)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if hidden {
		return errHidden
	}
	r.config.Logger.InfoContext(ctx, "the outbox is there", slog.String("schema", schema), slog.Int("version", version),
		slog.String("installation", installation))
	return nil
}
