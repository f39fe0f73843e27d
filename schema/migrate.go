package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/crash"
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
	// MigratorTimeout is how long a migration waits for another migrator before it gives up; the error names whoever holds
	// the lock. Every role that may connect can hold it, so the wait must end. Defaults to 10 min.
	MigratorTimeout time.Duration
	// DryRun, when set, gets the SQL that would run, as a script for psql; the database is only read.
	DryRun io.Writer
	// Applied, when set, is called after each migration, in either direction.
	Applied func(Migration, time.Duration)
}

// Up applies what is missing, in order, up to Options.Target.
//
// A schema that psql or another tool installed has no version table of ours; Up writes it from what the
// schema says about itself, and goes on from there.
func (s Set) Up(ctx context.Context, db *sql.DB, options Options) error {
	run, err := s.start(db, options)
	if err != nil {
		return err
	}
	if options.Target == 0 {
		options.Target = run.newest()
	}
	if err := run.adopt(ctx); err != nil {
		return err
	}
	for _, migration := range run.migrations {
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
// event is gone, and only the version table is left.
func (s Set) Down(ctx context.Context, db *sql.DB, options Options) error {
	run, err := s.start(db, options)
	if err != nil {
		return err
	}
	found, err := run.look(ctx, db)
	if err != nil {
		return run.explain("nothing was taken back", err)
	}
	// Ours cannot be taken back from under a migration that may build on them.
	if at := found.version(); at > run.newest() {
		return fmt.Errorf("schema: %s is at version %d and this program knows versions up to %d: go down with the program "+
			"that went up", run.schema, at, run.newest())
	}
	for _, migration := range slices.Backward(run.migrations) {
		if migration.Version <= options.Target {
			break
		}
		if err := run.step(ctx, migration, down); err != nil {
			return err
		}
	}
	return nil
}

// Applied lists the versions that were applied, in order. One that [Set.Migrations] does not list was
// applied by a newer program.
func (s Set) Applied(ctx context.Context, db *sql.DB, schema string) ([]int64, error) {
	run, err := s.start(db, Options{Schema: schema})
	if err != nil {
		return nil, err
	}
	found, err := run.look(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return found.versions, nil
}

type direction bool

const (
	up   direction = true
	down direction = false
)

// run is one call of Up or Down.
type run struct {
	set        Set
	db         *sql.DB
	options    Options
	migrations []Migration
	schema     string // quoted
	table      string // the version table, quoted, with its schema
	// begun and prepared: an earlier step of this dry run wrote the head of the script, and what makes the
	// schema and the version table; the database does not have them yet.
	begun, prepared bool
}

// maxNameBytes is how long PostgreSQL's names are at most.
const maxNameBytes = 63

func (s Set) start(db *sql.DB, options Options) (*run, error) {
	migrations, err := s.Migrations()
	if err != nil {
		return nil, err
	}
	if options.Schema == "" {
		options.Schema = "public"
	}
	if options.LockTimeout == 0 {
		options.LockTimeout = 5 * time.Second
	}
	if options.MigratorTimeout == 0 {
		options.MigratorTimeout = 10 * time.Minute
	}
	// PostgreSQL would cut it, and two outboxes whose schemas begin alike would be one.
	if len(options.Schema) > maxNameBytes {
		return nil, fmt.Errorf("schema: the name %.80q has %d bytes, PostgreSQL knows names of up to %d", options.Schema,
			len(options.Schema), maxNameBytes)
	}
	r := &run{set: s, db: db, options: options, migrations: migrations, schema: quoteIdent(options.Schema)}
	r.table = r.schema + "." + quoteIdent(s.VersionTable())
	if options.Target < 0 || options.Target > r.newest() {
		return nil, fmt.Errorf("schema: there is no version %d, the newest is %d", options.Target, r.newest())
	}
	// PostgreSQL takes 0 for "wait forever", and a fraction of a millisecond for 0.
	if shortest := min(options.LockTimeout, options.MigratorTimeout); shortest < time.Millisecond {
		return nil, fmt.Errorf("schema: a timeout of %s is too short, use at least 1ms", shortest)
	}
	return r, nil
}

func (r *run) newest() int64 { return r.migrations[len(r.migrations)-1].Version }

// adopt writes the version table for a schema that another tool installed without one.
func (r *run) adopt(ctx context.Context) error {
	_, err := r.do(ctx, "adopt", func(found state) []string {
		if found.table || len(found.versions) == 0 {
			return nil
		}
		return r.prepare(found)
	})
	if err != nil {
		return r.explain("the version table was not written", err)
	}
	return nil
}

// step takes one migration in its own transaction, unless it is done already.
func (r *run) step(ctx context.Context, migration Migration, to direction) error {
	begun := time.Now()
	title := fmt.Sprintf("%05d_%s", migration.Version, migration.Name)
	problem := "migration " + title + " was not applied"
	if to == down {
		problem = "migration " + title + " was not taken back"
		title += ", down"
	}
	did, err := r.do(ctx, title, func(found state) []string {
		if slices.Contains(found.versions, migration.Version) == bool(to) {
			return nil
		}
		return append(r.prepare(found), r.take(migration, to)...)
	})
	if err != nil {
		return r.explain(problem, err)
	}
	if did && r.options.DryRun == nil && r.options.Applied != nil {
		r.options.Applied(migration, time.Since(begun))
	}
	return nil
}

// do runs, or prints, the statements that are to be done about what is found, as one transaction.
func (r *run) do(ctx context.Context, title string, statements func(found state) []string) (did bool, err error) {
	if r.options.DryRun != nil {
		found, err := r.look(ctx, r.db)
		if err != nil {
			return false, err
		}
		return true, r.print(title, statements(found))
	}
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range r.lock() {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			_ = tx.Rollback() // so that a pool with one connection can be asked
			return false, r.waited(ctx, err)
		}
	}
	// Only now: the other migrator may have done this step.
	found, err := r.look(ctx, tx)
	if err != nil {
		return false, err
	}
	todo := statements(found)
	if len(todo) == 0 {
		return false, nil
	}
	crash.Point("migrate.before")
	for i, statement := range todo {
		if i > 0 {
			crash.Point("migrate.mid")
		}
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return false, fmt.Errorf("run: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("commit: %w", err)
	}
	crash.Point("migrate.after")
	return true, nil
}

// lockNotAvailable is the SQLSTATE of a lock_timeout.
const lockNotAvailable = "55P03"

// explain says what to do about the errors that a person meets.
func (r *run) explain(problem string, err error) error {
	hint := ""
	var state interface{ SQLState() string }
	var held *heldError
	switch {
	case errors.As(err, &held):
		hint = "; nothing was changed. Run it again when that migrator has ended, or end what is no migrator: " +
			"SELECT pg_terminate_backend(process)"
	case errors.As(err, &state):
		switch state.SQLState() {
		case lockNotAvailable:
			hint = "; live traffic holds a lock on the table: nothing was changed, run it again at a quieter moment or raise " +
				"LockTimeout"
		case "42501":
			hint = "; migrations run as the owner of the schema: connect as that role, or have somebody create the schema and " +
				"grant you CREATE on it"
		case "25006":
			hint = "; this server only reads: connect to the primary"
		}
	}
	return fmt.Errorf("schema: %s: %w%s", problem, err, hint)
}

// heldError is a wait for the other migrator that took too long.
type heldError struct {
	by  string // who holds the lock
	err error
}

func (e *heldError) Error() string {
	return fmt.Sprintf("%s holds the lock of migrations: %s", e.by, e.err)
}

func (e *heldError) Unwrap() error { return e.err }

// waited says who was waited for.
func (r *run) waited(ctx context.Context, err error) error {
	err = fmt.Errorf("wait for the other migrator: %w", err)
	var state interface{ SQLState() string }
	if !errors.As(err, &state) || state.SQLState() != lockNotAvailable {
		return err
	}
	held := &heldError{err: err}
	if asked := r.db.QueryRowContext(ctx, r.holders()).Scan(&held.by); asked != nil {
		return errors.Join(err, asked)
	}
	return held
}
