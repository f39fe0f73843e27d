package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Options say where and how to migrate. The zero value migrates the schema public to the newest version.
type Options struct {
	// Schema is the schema to install into; it is created when it does not exist. Defaults to "public".
	Schema string
	// Target is the version to go to. Up stops there and defaults to the newest; Down goes back to it
	// and defaults to 0, which removes everything.
	Target int64
	// LockTimeout is how long a migration waits for a lock that live traffic holds before it gives up;
	// nothing is half done then. Defaults to 5 s.
	LockTimeout time.Duration
	// DryRun, when set, gets the SQL that would run, as a script for psql; the database is only read.
	DryRun io.Writer
	// Applied, when set, is called after each migration.
	Applied func(Migration, time.Duration)
}

// Up applies what is missing, in order, up to Options.Target.
func (s Set) Up(ctx context.Context, db *sql.DB, options Options) error {
	migrations, err := s.Migrations()
	if err != nil {
		return err
	}
	newest := migrations[len(migrations)-1].Version
	if options.Target == 0 {
		options.Target = newest
	}
	if options.Target < 0 || options.Target > newest {
		return fmt.Errorf("schema: there is no version %d, the newest is %d", options.Target, newest)
	}
	run := s.start(db, options)
	for _, migration := range migrations {
		if migration.Version > options.Target {
			break
		}
		if err := run.step(ctx, migration, up); err != nil {
			return err
		}
	}
	return nil
}

// Down takes migrations back, newest first, until Options.Target is the version. With Target 0 every
// event is gone.
func (s Set) Down(ctx context.Context, db *sql.DB, options Options) error {
	migrations, err := s.Migrations()
	if err != nil {
		return err
	}
	run := s.start(db, options)
	for _, migration := range slices.Backward(migrations) {
		if migration.Version <= options.Target {
			break
		}
		if err := run.step(ctx, migration, down); err != nil {
			return err
		}
	}
	return nil
}

// Applied lists the versions that were applied, in order.
func (s Set) Applied(ctx context.Context, db *sql.DB, schema string) ([]int64, error) {
	return s.start(db, Options{Schema: schema}).applied(ctx, db)
}

type direction bool

const (
	up   direction = true
	down direction = false
)

// run is one call of Up or Down.
type run struct {
	set     Set
	db      *sql.DB
	options Options
	schema  string // quoted
	table   string // quoted, with its schema
	// madeSchema: an earlier step of this run makes the schema; in a dry run it is still missing.
	madeSchema bool
}

func (s Set) start(db *sql.DB, options Options) *run {
	if options.Schema == "" {
		options.Schema = "public"
	}
	if options.LockTimeout == 0 {
		options.LockTimeout = 5 * time.Second
	}
	quoted := quoteIdent(options.Schema)
	return &run{set: s, db: db, options: options, schema: quoted, table: quoted + "." + quoteIdent(s.VersionTable())}
}

// step takes one migration in its own transaction, unless it is done already.
func (r *run) step(ctx context.Context, migration Migration, to direction) error {
	if r.options.DryRun != nil {
		return r.print(ctx, migration, to)
	}
	begun := time.Now()
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("schema: begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()

	// A lock of the transaction, not of the session: it also works behind a pooler, and a crash frees it.
	// It comes before lock_timeout: another migrator may take as long as it needs.
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "posthaste migrate "+r.table); err != nil {
		return fmt.Errorf("schema: wait for the other migrator: %w", err)
	}
	// Only now: the other migrator may have done this step.
	done, err := r.applied(ctx, tx)
	if err != nil {
		return err
	}
	if slices.Contains(done, migration.Version) == bool(to) {
		return nil
	}
	statements, err := r.statements(ctx, tx, migration, to)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return r.explain(migration, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return r.explain(migration, err)
	}
	if r.options.Applied != nil {
		r.options.Applied(migration, time.Since(begun))
	}
	return nil
}

// statements are what one step sends, in order. None has arguments, so a migration of many statements
// is sent as it is.
func (r *run) statements(ctx context.Context, db querier, migration Migration, to direction) ([]string, error) {
	statements := []string{fmt.Sprintf("SET LOCAL lock_timeout = '%dms'", r.options.LockTimeout.Milliseconds())}
	// Only when it is missing: IF NOT EXISTS asks for the right to create schemas even when there is nothing to do.
	exists, err := r.exists(ctx, db, "to_regnamespace", r.schema)
	if err != nil {
		return nil, err
	}
	if !exists && !r.madeSchema {
		statements = append(statements, "CREATE SCHEMA "+r.schema)
		r.madeSchema = true
	}
	statements = append(statements,
		// Nothing but the catalog and our own schema: a file that named anything else would fail.
		"SET LOCAL search_path = "+r.schema,
		// goose's own form, so that either tool can go on where the other stopped.
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (id integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now())", r.table),
		fmt.Sprintf("INSERT INTO %s (version_id, is_applied) SELECT 0, true WHERE NOT EXISTS (SELECT FROM %s)", r.table, r.table),
	)
	if to == down {
		return append(statements, migration.Down, fmt.Sprintf("DELETE FROM %s WHERE version_id = %d", r.table, migration.Version)), nil
	}
	return append(statements, migration.Up, fmt.Sprintf("INSERT INTO %s (version_id, is_applied) VALUES (%d, true)", r.table, migration.Version)), nil
}

func (r *run) print(ctx context.Context, migration Migration, to direction) error {
	done, err := r.applied(ctx, r.db)
	if err != nil {
		return err
	}
	if slices.Contains(done, migration.Version) == bool(to) {
		return nil
	}
	script := []string{fmt.Sprintf("-- %05d_%s", migration.Version, migration.Name), "BEGIN;"}
	statements, err := r.statements(ctx, r.db, migration, to)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		script = append(script, strings.TrimRight(statement, ";\n")+";")
	}
	if _, err := io.WriteString(r.options.DryRun, strings.Join(append(script, "COMMIT;\n\n"), "\n")); err != nil {
		return fmt.Errorf("schema: print: %w", err)
	}
	return nil
}

// querier is the database or a transaction on it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// applied reads the version table, which may not exist yet.
func (r *run) applied(ctx context.Context, db querier) (versions []int64, err error) {
	exists, err := r.exists(ctx, db, "to_regclass", r.table)
	if err != nil || !exists {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT version_id FROM %s WHERE is_applied AND version_id > 0 ORDER BY version_id", r.table))
	if err != nil {
		return nil, fmt.Errorf("schema: read %s: %w", r.table, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return nil, fmt.Errorf("schema: read %s: %w", r.table, err)
		}
		versions = append(versions, version)
	}
	return versions, rows.Err()
}

// exists asks to_regclass or to_regnamespace for a name.
func (r *run) exists(ctx context.Context, db querier, lookup, name string) (exists bool, err error) {
	if err := db.QueryRowContext(ctx, "SELECT "+lookup+"($1) IS NOT NULL", name).Scan(&exists); err != nil {
		return false, fmt.Errorf("schema: look for %s: %w", name, err)
	}
	return exists, nil
}

// explain says what to do about the errors that a person meets.
func (r *run) explain(migration Migration, err error) error {
	hint := ""
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		switch state.SQLState() {
		case "55P03":
			hint = "; live traffic holds a lock on the table: nothing was changed, run it again at a quieter moment or raise LockTimeout"
		case "42501":
			hint = "; migrations run as the owner of the schema: connect as that role, or grant it CREATE on the schema"
		}
	}
	return fmt.Errorf("schema: migration %05d_%s was not applied: %w%s", migration.Version, migration.Name, err, hint)
}

func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
