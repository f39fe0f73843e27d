package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/schema"
)

// newMigrate is the group of the commands that migrate.
func newMigrate(root *rootCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Install, update or remove the tables",
		Long: `Install, update or remove the tables.

The migrations are plain SQL and also work with goose and psql; all of them share one version table.
Each migration is one transaction: an interrupted run leaves no half of one, and running it again goes
on where it stopped. Several runs at once wait for each other.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return errors.New("up, down, status, sql or lookups is missing") },
	}
	which := &tables{}
	cmd.PersistentFlags().BoolVar(&which.inbox, "inbox", false, "the tables of an inbox instead of those of an outbox")
	cmd.AddCommand(
		(&migrateUpCommand{migration: migration{root: root, tables: which}}).command(),
		(&migrateDownCommand{migration: migration{root: root, tables: which}}).command(),
		(&migrateStatusCommand{root: root, tables: which}).command(),
		(&migrateSQLCommand{root: root, tables: which}).command(),
		newMigrateLookups(root),
	)
	return cmd
}

// tables are those that a command is about.
type tables struct {
	inbox bool
}

func (t *tables) set() schema.Set {
	if t.inbox {
		return schema.Inbox
	}
	return schema.Outbox
}

// in names the tables of a schema to people.
func (t *tables) in(name string) string {
	if t.inbox {
		return "the inbox in schema " + name
	}
	return "schema " + name
}

// migration is what up and down share.
type migration struct {
	*tables
	root        *rootCommand
	target      int64
	lockTimeout time.Duration
	dryRun      bool
}

func (m *migration) addFlags(cmd *cobra.Command, target string) {
	cmd.Flags().Int64Var(&m.target, "target", 0, target)
	cmd.Flags().DurationVar(&m.lockTimeout, "lock-timeout", 5*time.Second,
		"how long to wait for a lock that live traffic holds")
	cmd.Flags().BoolVar(&m.dryRun, "dry-run", false,
		"print the SQL that would run, as a script for psql, and change nothing")
}

// do migrates in one direction and says what it did.
func (m *migration) do(ctx context.Context, out io.Writer, done string,
	migrate func(context.Context, *sql.DB, schema.Options) error,
) (err error) {
	if m.lockTimeout < time.Millisecond {
		return usageError{fmt.Sprintf("--lock-timeout %s is too short, use at least 1ms", m.lockTimeout)}
	}
	db, err := m.root.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	options := schema.Options{Schema: m.root.schema, Target: m.target, LockTimeout: m.lockTimeout}
	if m.dryRun {
		options.DryRun = out
		return migrate(ctx, db, options)
	}
	steps := 0
	options.Applied = func(step schema.Migration, took time.Duration) {
		steps++
		_, _ = fmt.Fprintf(out, "%s %05d_%s in %s\n", done, step.Version, step.Name, took.Round(time.Millisecond))
	}
	begun := time.Now()
	if err := migrate(ctx, db, options); err != nil {
		return err
	}
	versions, err := m.set().Applied(ctx, db, m.root.schema)
	if err != nil {
		return err
	}
	return say(out, "%s is at version %d: %d migrations in %s\n", m.in(m.root.schema), last(versions), steps,
		time.Since(begun).Round(time.Millisecond))
}

// last is the highest version, or 0.
func last(versions []int64) int64 {
	if len(versions) == 0 {
		return 0
	}
	return versions[len(versions)-1]
}

// known are the migrations that this program carries.
func (t *tables) known() ([]schema.Migration, int64, error) {
	migrations, err := t.set().Migrations()
	if err != nil {
		return nil, 0, err
	}
	return migrations, migrations[len(migrations)-1].Version, nil
}

// checkTarget refuses a version that does not exist.
func (t *tables) checkTarget(flag string, version int64) error {
	_, newest, err := t.known()
	if err == nil && (version < 0 || version > newest) {
		return usageError{fmt.Sprintf("%s %d: there is no such version, the newest is %d", flag, version, newest)}
	}
	return err
}
