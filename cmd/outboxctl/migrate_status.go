package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/schema"
)

// migrateStatusCommand lists the migrations.
type migrateStatusCommand struct {
	root *rootCommand
}

func (c *migrateStatusCommand) command() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which migrations are applied",
		Example: `  outboxctl migrate status
  outboxctl migrate status --schema billing`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
}

func (c *migrateStatusCommand) run(ctx context.Context, out io.Writer) (err error) {
	migrations, newest, err := known()
	if err != nil {
		return err
	}
	db, err := c.root.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	versions, err := schema.Outbox.Applied(ctx, db, c.root.schema)
	if err != nil {
		return err
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "schema %s is at version %d of %d\n", c.root.schema, last(versions), newest)
	for _, migration := range migrations {
		word := "missing"
		if slices.Contains(versions, migration.Version) {
			word = "applied"
		}
		fmt.Fprintf(&lines, "  %s  %05d_%s\n", word, migration.Version, migration.Name)
	}
	for _, version := range versions {
		if version > newest {
			fmt.Fprintf(&lines, "  applied  %05d, by a newer outboxctl\n", version)
		}
	}
	return say(out, "%s", lines.String())
}
