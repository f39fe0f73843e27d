package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// migrateStatusCommand lists the migrations.
type migrateStatusCommand struct {
	*tables
	root *rootCommand
}

func (c *migrateStatusCommand) command() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which migrations are applied",
		Example: `  outboxctl migrate status
  outboxctl migrate status --schema billing
  outboxctl migrate status --inbox`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
}

func (c *migrateStatusCommand) run(ctx context.Context, out io.Writer) (err error) {
	migrations, newest, err := c.known()
	if err != nil {
		return err
	}
	db, err := c.root.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	versions, err := c.set().Applied(ctx, db, c.root.schema)
	if state := sqlState(nil); errors.As(err, &state) && state.SQLState() == "42501" {
		return problem{code: "permission_denied", exit: exitNotLetIn, err: err, hint: "connect as the owner of the tables"}
	}
	if err != nil {
		return err
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "%s is at version %d of %d\n", c.in(c.root.schema), last(versions), newest)
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
