package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

//go:embed wal.sql
var walByRelation string

// WAL is what was written to the write-ahead log.
type WAL struct {
	Records int64
	// Bytes has the full-page images in it.
	Bytes int64
	// PageImages is how many of the bytes are full-page images: they come once per page after each
	// checkpoint, so they say more about the checkpoint than about the statement.
	PageImages int64
	// ByRelation tells it by table, index or sequence. "transactions" are the commits. "catalog" is not in
	// the sums: autovacuum and readers of the catalogs write it, whatever is measured.
	ByRelation map[string]WAL
}

// Data is the log without full-page images.
func (w WAL) Data() int64 { return w.Bytes - w.PageImages }

// A WALMeter counts the log of one scratch database, record by record, whatever else the server does
// meanwhile. It needs the extension pg_walinspect, which PostgreSQL brings along.
type WALMeter struct {
	db *Database
}

// NewWALMeter prepares the database for it.
func NewWALMeter(ctx context.Context, db *Database) (*WALMeter, error) {
	if err := db.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_walinspect"); err != nil {
		return nil, fmt.Errorf("%w (WAL is counted with pg_walinspect: install PostgreSQL's contrib modules)", err)
	}
	return &WALMeter{db: db}, nil
}

// Measure runs the work and counts what it wrote. The work must be committed with synchronous_commit on,
// since the meter reads what is flushed.
func (m *WALMeter) Measure(ctx context.Context, work func(context.Context) error) (total WAL, err error) {
	release, err := m.keep(ctx)
	if err != nil {
		return WAL{}, err
	}
	defer func() { err = errors.Join(err, release()) }()
	from, err := m.position(ctx)
	if err != nil {
		return WAL{}, err
	}
	if err := work(ctx); err != nil {
		return WAL{}, err
	}
	to, err := m.position(ctx)
	if err != nil {
		return WAL{}, err
	}
	rows, err := m.db.Control.Query(ctx, walByRelation, from, to)
	if err != nil {
		return WAL{}, fmt.Errorf("bench: read the WAL: %w", err)
	}
	total = WAL{ByRelation: map[string]WAL{}}
	var relation string
	var one WAL
	_, err = pgx.ForEachRow(rows, []any{&relation, &one.Records, &one.Bytes, &one.PageImages}, func() error {
		total.ByRelation[relation] = one
		if relation == "catalog" {
			return nil
		}
		total.Records += one.Records
		total.Bytes += one.Bytes
		total.PageImages += one.PageImages
		return nil
	})
	if err != nil {
		return WAL{}, fmt.Errorf("bench: read the WAL: %w", err)
	}
	return total, nil
}

// keep has the server keep the log from now on: a checkpoint would remove what is not read yet, and others make many.
// The slot goes with the connection at the latest.
func (m *WALMeter) keep(ctx context.Context) (release func() error, err error) {
	name := "bench_" + strings.ReplaceAll(outbox.NewID().String(), "-", "")
	const create = "SELECT pg_create_physical_replication_slot($1, immediately_reserve => true, temporary => true)"
	if _, err := m.db.Control.Exec(ctx, create, name); err != nil {
		return nil, fmt.Errorf("bench: keep the WAL: %w", err)
	}
	return func() error {
		// Also where the work was given up.
		if _, err := m.db.Control.Exec(context.WithoutCancel(ctx), "SELECT pg_drop_replication_slot($1)", name); err != nil {
			return fmt.Errorf("bench: drop the slot that kept the WAL: %w", err)
		}
		return nil
	}, nil
}

func (m *WALMeter) position(ctx context.Context) (string, error) {
	var lsn string
	if err := m.db.Control.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&lsn); err != nil {
		return "", fmt.Errorf("bench: position in the WAL: %w", err)
	}
	return lsn, nil
}
