package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// migrateSQLCommand prints migrations for other tools.
type migrateSQLCommand struct {
	*tables
	root        *rootCommand
	version     int64
	down        bool
	schemaGiven func() bool
}

func (c *migrateSQLCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print the migrations, for other tools",
		Long: `Print the migrations as plain SQL, without a database, for tools such as Flyway, Liquibase or Atlas.

They install into the first schema of search_path; with --schema the output sets it. When your tool has
applied them, 'outboxctl migrate status' still knows the version, because the tables say it.`,
		Example: `  outboxctl migrate sql > outbox.sql
  outboxctl migrate sql --version 2 > V2__outbox_emit.sql
  outboxctl migrate sql --version 2 --down > U2__outbox_emit.sql
  outboxctl migrate sql --inbox > inbox.sql`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
	cmd.Flags().Int64Var(&c.version, "version", 0, "print this version only (default all, in order)")
	cmd.Flags().BoolVar(&c.down, "down", false, "print what takes the migrations back, newest first")
	c.schemaGiven = func() bool { return cmd.Flags().Changed("schema") }
	return cmd
}

func (c *migrateSQLCommand) run(_ context.Context, out io.Writer) error {
	if err := c.checkTarget("--version", c.version); err != nil {
		return err
	}
	migrations, _, err := c.known()
	if err != nil {
		return err
	}
	if c.down {
		slices.Reverse(migrations)
	}
	var text strings.Builder
	if c.schemaGiven() {
		fmt.Fprintf(&text, "SET search_path = \"%s\";\n\n", strings.ReplaceAll(c.root.schema, `"`, `""`))
	}
	for _, migration := range migrations {
		if c.version != 0 && migration.Version != c.version {
			continue
		}
		body, direction := migration.Up, ""
		if c.down {
			body, direction = migration.Down, ", down"
		}
		fmt.Fprintf(&text, "-- %05d_%s%s\n\n%s\n\n", migration.Version, migration.Name, direction, strings.TrimSpace(body))
	}
	return say(out, "%s\n", strings.TrimRight(text.String(), "\n"))
}
