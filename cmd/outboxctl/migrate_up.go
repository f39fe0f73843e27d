package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// migrateUpCommand applies what is missing.
type migrateUpCommand struct {
	migration
	grants []string
}

func (c *migrateUpCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that are missing",
		Long: `Apply the migrations that are missing, in order.

The schema is created when it does not exist. What psql or another tool installed is taken over: the
version table is written from what the tables say about themselves.

A migration may bring tables that roles have no right to yet. --grant PART=ROLE gives a role its part when the tables
are there, as 'outboxctl grant' does; name all of them, once for each.`,
		Example: `  outboxctl migrate up
  outboxctl migrate up --schema billing --lock-timeout 2s
  outboxctl migrate up --inbox
  outboxctl migrate up --grant producer=shop --grant relay=shop_publisher --grant janitor=shop_publisher
  outboxctl migrate up --dry-run | psql "$DATABASE_URL"`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
	c.addFlags(cmd, "the version to stop at (default the newest)")
	cmd.Flags().StringArrayVar(&c.grants, "grant", nil, "a PART=ROLE to grant afterwards")
	return cmd
}

func (c *migrateUpCommand) run(ctx context.Context, out io.Writer) error {
	if err := c.checkTarget("--target", c.target); err != nil {
		return err
	}
	grants, err := c.parseGrants()
	if err != nil {
		return err
	}
	if err := c.do(ctx, out, "applied", c.set().Up); err != nil {
		return err
	}
	for _, grant := range grants {
		if c.dryRun {
			err = say(out, "%s;\n", grant.statement(quoted(grant.part), quoted(grant.role)))
		} else {
			err = grant.run(ctx, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseGrants understands --grant.
func (c *migrateUpCommand) parseGrants() (grants []*grantCommand, err error) {
	for _, text := range c.grants {
		part, role, _ := strings.Cut(text, "=")
		grant := &grantCommand{tables: *c.tables, root: c.root, part: part, role: role}
		if err := grant.checkPart(); err != nil {
			return nil, usageError{"--grant: " + err.Error()}
		}
		if role == "" {
			return nil, usageError{fmt.Sprintf("--grant %.80q: write it as PART=ROLE", text)}
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// quoted is a literal of SQL.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
