package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
)

// devCommand is an outbox that a developer can look at.
type devCommand struct {
	root       *rootCommand
	demo, take bool
	registry   string
	console    string
	contracts  *outbox.Registry // of the file; nil: there is none
}

func newDev(root *rootCommand) *cobra.Command {
	c := &devCommand{root: root}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "See events delivered on this terminal: install the tables, run a relay, print what it publishes",
		Long: `See events delivered on this terminal, without a broker: install the tables, run a relay in this process, and
print every event that it publishes. It runs until Ctrl-C.

Where no database is given, the PostgreSQL of this machine is taken, as psql would find it: PGHOST and the like, else
the usual sockets and 127.0.0.1:5432.

Every event type is accepted; its topic is named after the aggregate type. With --registry only the types of that file
are, and an event of another one is parked. --demo has a small shop emit events: one type fails and ends as dead
letters, one topic goes down and comes back, so that the other commands have something to show.

The console of 'outboxctl console' is served beside it, on this machine alone, with all rights.

What is printed here counts as published, and goes nowhere else. So it stops where other relays publish from the same
outbox, or where there are events and no 'outboxctl dev' was there within the last day, unless --yes-take-events is
given. It looks before it changes anything.`,
		Example: `  outboxctl dev
  outboxctl dev --demo
  outboxctl dev --database-url postgres://localhost/shop --registry registry.yaml`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&c.demo, "demo", false, "emit the events of a small shop, with failures")
	cmd.Flags().StringVar(&c.console, "console", "127.0.0.1:8087", "where the console listens; empty: nowhere")
	cmd.Flags().StringVar(&c.registry, "registry", "", "a file of contracts, as outbox-publisher has it")
	cmd.Flags().BoolVar(&c.take, "yes-take-events", false, "also where other relays publish from this outbox, or may have")
	return root.show(cmd, c.run)
}

func (c *devCommand) run(ctx context.Context, p *present.Printer) error {
	settings, types := dev.Config{Schema: c.root.schema, Demo: c.demo}, "every type"
	example := exampleEvent(nil)
	if c.registry != "" {
		file, err := registryfile.Load(c.registry, registryfile.Options{DefaultTopic: "dev"})
		if err != nil {
			return usageError{"--registry: " + err.Error()}
		}
		c.contracts = file.Registry
		settings.Registry, types = file.Registry, plural(len(file.Registry.Types()), "type", "types")
		example = exampleEvent(file.Registry)
	}
	config, found, err := c.root.configOrLocal(ctx)
	if err != nil {
		return err
	}
	pool, err := poolOf(ctx, config, 3)
	if err != nil {
		return err
	}
	defer pool.Close()
	told := &devTerminal{printer: p, notes: c.root.notes(), root: c.root}
	if err := c.prepare(ctx, pool, config, told); err != nil {
		return err
	}
	settings.Database = config.ConnString()
	settings.BeforeConnect = func(_ context.Context, connecting *pgx.ConnConfig) error {
		connecting.Password = config.Password
		return nil
	}
	settings.Delivered, settings.Notice = told.delivered, told.notice
	page, end := c.serveConsole(ctx, config, told)
	defer end()
	settings.Ready = func() { told.ready(config, page, found, c.demo, types, example) }
	delivered, err := dev.Run(ctx, pool, settings)
	if err != nil {
		return c.root.hint(err, "relay")
	}
	told.say(fmt.Sprintf("\nstopped; %s delivered", plural(delivered, "event", "events")))
	return nil
}

// prepare looks whose outbox it is, and installs the tables.
func (c *devCommand) prepare(ctx context.Context, pool *pgxpool.Pool, config *pgx.ConnConfig, told *devTerminal) error {
	var version, database string
	if err := pool.QueryRow(ctx, "SELECT current_setting('server_version'), current_database()").
		Scan(&version, &database); err != nil {
		return fmt.Errorf("ask for the server's version: %w", err)
	}
	version, _, _ = strings.Cut(version, " ")
	told.done("connected to PostgreSQL " + version + " at " + config.Host + ", database " + database)
	if err := c.mayTake(ctx, pool); err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	steps, begun := 0, time.Now()
	err := schema.Outbox.Up(ctx, db, schema.Options{
		Schema: c.root.schema, Applied: func(schema.Migration, time.Duration) { steps++ },
	})
	if err != nil {
		return c.cannotInstall(err)
	}
	versions, err := c.version(ctx, db)
	if err != nil {
		return err
	}
	told.done(fmt.Sprintf("schema %s is at version %d (%s in %s)", c.root.schema, versions,
		plural(steps, "migration", "migrations"), time.Since(begun).Round(time.Millisecond)))
	return nil
}

// mayTake looks whose outbox it is before anything is changed there.
func (c *devCommand) mayTake(ctx context.Context, pool *pgxpool.Pool) error {
	if c.take {
		return nil
	}
	whose, err := dev.Look(ctx, pool, c.root.schema)
	if err != nil {
		return c.root.hint(err, "relay")
	}
	const hint = "use another database, or --schema NAME for an outbox of your own; or pass --yes-take-events"
	switch {
	case len(whose.Others) > 0:
		return problem{
			code: "other_relays", exit: exitFailed, hint: hint,
			err: fmt.Errorf("other relays publish from this outbox, for instance %s: what is printed here would never reach "+
				"their broker", strings.Join(whose.Others, ", ")),
		}
	case whose.Strange:
		return problem{
			code: "strange_events", exit: exitFailed, hint: hint,
			err: errors.New("there are events in this outbox, and no 'outboxctl dev' was here within the last day: they may " +
				"be somebody's, whose broker would never get what is printed here"),
		}
	}
	return nil
}

func (c *devCommand) version(ctx context.Context, db *sql.DB) (int64, error) {
	versions, err := schema.Outbox.Applied(ctx, db, c.root.schema)
	if err != nil {
		return 0, err
	}
	return last(versions), nil
}

// cannotInstall says what a developer does about a role that may not create tables.
func (c *devCommand) cannotInstall(err error) error {
	if state := sqlState(nil); errors.As(err, &state) && state.SQLState() == "42501" {
		return problem{
			code: "permission_denied", exit: exitNotLetIn, err: err,
			hint: "the role may not create tables in schema " + c.root.schema + ": connect as the owner of the database, or " +
				"have one run GRANT CREATE ON SCHEMA " + pgx.Identifier{c.root.schema}.Sanitize() + " TO the role",
		}
	}
	return err
}
