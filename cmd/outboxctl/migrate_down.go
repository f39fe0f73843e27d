package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// migrateDownCommand takes migrations back.
type migrateDownCommand struct {
	migration
	deleteEverything bool
	targetGiven      func() bool
}

func (c *migrateDownCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "down --target VERSION",
		Short: "Take migrations back",
		Long: `Take migrations back, newest first, until the target is the version.

Tables go with the migrations that made them, and so does what is in them. Version 0 is before the first
migration: every event is gone then, published or not; of an inbox, the memory of what was handled.`,
		Example: `  outboxctl migrate down --target 4
  outboxctl migrate down --target 4 --dry-run
  outboxctl migrate down --target 0 --yes-delete-everything`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
	c.addFlags(cmd, "the version to go back to; there is no default")
	cmd.Flags().BoolVar(&c.deleteEverything, "yes-delete-everything", false,
		"needed for --target 0: delete every event, dead letter and dedupe key")
	c.targetGiven = func() bool { return cmd.Flags().Changed("target") }
	return cmd
}

func (c *migrateDownCommand) run(ctx context.Context, out io.Writer) error {
	if !c.targetGiven() {
		return usageError{"--target is missing: the version to go back to"}
	}
	if err := c.checkTarget("--target", c.target); err != nil {
		return err
	}
	if c.target == 0 && !c.dryRun && !c.deleteEverything {
		lost := "deletes every event, published or not"
		if c.inbox {
			lost = "forgets everything that was handled, so that it is handled again if it comes again"
		}
		return usageError{"--target 0 " + lost + ": pass --yes-delete-everything as well, or look first with --dry-run"}
	}
	return c.do(ctx, out, "took back", c.set().Down)
}
