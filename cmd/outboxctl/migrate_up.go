package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// migrateUpCommand applies what is missing.
type migrateUpCommand struct {
	migration
}

func (c *migrateUpCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that are missing",
		Long: `Apply the migrations that are missing, in order.

The schema is created when it does not exist. What psql or another tool installed is taken over: the
version table is written from what the tables say about themselves.`,
		Example: `  outboxctl migrate up
  outboxctl migrate up --schema billing --lock-timeout 2s
  outboxctl migrate up --inbox
  outboxctl migrate up --dry-run | psql "$DATABASE_URL"`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
	c.addFlags(cmd, "the version to stop at (default the newest)")
	return cmd
}

func (c *migrateUpCommand) run(ctx context.Context, out io.Writer) error {
	if err := c.checkTarget("--target", c.target); err != nil {
		return err
	}
	return c.do(ctx, out, "applied", c.set().Up)
}
