package relay

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// Logical replication and partial restores bring a table without its sequence. New events would then have numbers below
// older ones: the order breaks, and consumers that keep the newest number drop the new events for good. So a relay that
// starts, and one that finds itself on another server, compares the sequence with the highest number in use, and pauses
// until somebody has set it.

//go:embed sql/sequence.sql
var sequenceSQL string

// sequenceError says that the sequence is behind the numbers in use.
type sequenceError struct {
	schema        string
	last, highest int64
}

func (e *sequenceError) Error() string {
	return fmt.Sprintf("relay: the outbox came without its sequence: it stands at %d, numbers up to %d are in use; run %s",
		e.last, e.highest, e.repair())
}

// repair sets the sequence. Before that it takes back the floors of the lanes, which were copied as well: what was
// emitted since has numbers below them, and would wait for a sweep. The floors that relays told last count no more when
// they are ended: one that is alive starts anew. The lock keeps it from that until all of it is done.
func (e *sequenceError) repair() string {
	name := func(table string) string { return pgx.Identifier{e.schema, table}.Sanitize() }
	return fmt.Sprintf("BEGIN; LOCK TABLE %[1]s; UPDATE %[1]s SET lanes = '{}', ended_at = clock_timestamp() "+
		"WHERE ended_at IS NULL; UPDATE %[2]s SET owner = NULL, token = NULL, floor = 0; SELECT setval('%[3]s', %[4]d); "+
		"COMMIT",
		name("outbox_relays"), name("outbox_lanes"), strings.ReplaceAll(name("outbox_events_seq_seq"), "'", "''"),
		e.highest)
}

func (e *sequenceError) say(ctx context.Context, logger *slog.Logger, pending []slog.Attr) {
	logger.LogAttrs(ctx, slog.LevelError, "paused: the outbox came without its sequence", append(pending,
		slog.String("unknown",
			"which events were emitted since: they have numbers below older ones, and would be sent before them"),
		slog.String("go_on", e.repair()+", as the owner of the outbox"))...)
}

// checkSequence fails where the sequence is behind. Where the query takes too long, or this role may not run it, the
// relay goes on without it.
func (d *databaseIdentity) checkSequence(ctx context.Context, db querier) error {
	ctx, cancel := context.WithTimeout(ctx, d.config.Lease/3)
	defer cancel()
	behind := &sequenceError{schema: d.config.Schema}
	err := db.QueryRow(ctx, d.sequence).Scan(&behind.last, &behind.highest)
	switch {
	case sqlstate.PermissionDenied(err), errors.Is(err, context.DeadlineExceeded),
		sqlstate.Of(err) == sqlstate.QueryCanceled:
		d.config.Logger.WarnContext(ctx, "a sequence that is behind the table will not be noticed",
			slog.String("error", clean.Error(err)))
		return nil
	case err != nil:
		return fmt.Errorf("relay: %w", err)
	case behind.last < behind.highest:
		return behind
	default:
		return nil
	}
}
