package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
)

// parts are what outbox_grant knows, inboxParts what inbox_grant does.
var (
	parts      = []string{"producer", "relay", "janitor", "viewer", "operator", "reader"}
	inboxParts = []string{"consumer", "janitor", "viewer"}
)

// grantCommand gives a role the rights of a part.
type grantCommand struct {
	tables
	root       *rootCommand
	part, role string
	consumers  []string
}

func (c *grantCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grant PART ROLE",
		Short: "Give a database role what one part of the system needs",
		Long: `Give a database role the least that one part of the system needs:

  producer  write events
  relay     lease lanes, read events, settle them, write dead letters
  janitor   delete what retention allows
  viewer    look at everything but payloads, headers and keys
  operator  what the viewer may; redrive, skip, release, discard, reissue, replay and erase; pause, resume and limit;
            work on jobs
  reader    look at the payload of one event at a time, each look with a line in the log of actions; beside viewer or
            operator, which do not have it

and with --inbox, of the tables of an inbox:

  consumer  mark events as handled
  janitor   delete what retention allows
  viewer    look at everything

With --consumers a consumer's role is bound to these names: under another name it can mark nothing. Without, it may use
every name, and what was bound before stays bound.

The role must exist. It may have several parts. Run it again after a migration that adds tables.

Jobs are worked on by outbox-publisher if its role is operator as well as relay. One that runs already finds out within
60 seconds.`,
		Example: `  outboxctl grant producer app
  outboxctl grant relay outbox_publisher --schema billing
  outboxctl grant --inbox consumer app --consumers mailer,read-model`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("grant takes a part and a role, got %d arguments", len(args))
			}
			c.part, c.role = args[0], args[1]
			if len(c.consumers) > 0 && (!c.inbox || c.part != "consumer") {
				return errors.New("--consumers is about a consumer of an inbox: use it with --inbox consumer")
			}
			return c.checkPart()
		},
		RunE: run(c.run),
	}
	cmd.Flags().BoolVar(&c.inbox, "inbox", false, "the tables of an inbox instead of those of an outbox")
	cmd.Flags().StringSliceVar(&c.consumers, "consumers", nil,
		"the names of consumers to which the role is bound, with commas between them")
	return cmd
}

func (c *grantCommand) run(ctx context.Context, out io.Writer) (err error) {
	db, err := c.root.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	statement, args := c.statement("$1", "$2"), []any{c.part, c.role}
	if len(c.consumers) > 0 {
		statement = c.statement("$1", "$2", "string_to_array($3::text, ',')")
		args = append(args, strings.Join(c.consumers, ","))
	}
	if _, err := db.ExecContext(ctx, statement, args...); err != nil {
		return c.hint(fmt.Errorf("grant %s to %s: %w", c.part, c.role, err))
	}
	return say(out, "role %s is now %s in %s\n", c.role, c.part, c.in(c.root.schema))
}

// checkPart refuses a part that there is not.
func (c *grantCommand) checkPart() error {
	known := parts
	if c.inbox {
		known = inboxParts
	}
	if !slices.Contains(known, c.part) {
		return fmt.Errorf("there is no part %.80q: use %s", c.part, strings.Join(known, ", "))
	}
	return nil
}

// statement grants the part to the role, and binds it to consumers.
func (c *grantCommand) statement(part, role string, consumers ...string) string {
	name := pgx.Identifier{c.root.schema, c.set().Name + "_grant"}.Sanitize()
	args := append([]string{part + "::text", role + "::text::name"}, consumers...)
	return fmt.Sprintf("SELECT %s(%s)", name, strings.Join(args, ", "))
}

// hint says what to do about the errors that a person meets.
func (c *grantCommand) hint(err error) error {
	var state sqlState
	if !errors.As(err, &state) {
		return err
	}
	switch code := state.SQLState(); {
	case code == "42704":
		return problem{
			code: "no_role", exit: exitFailed, err: err,
			hint: "create the role first: CREATE ROLE " + pgx.Identifier{c.role}.Sanitize() + " LOGIN",
		}
	case c.inbox && (code == "3F000" || code == "42883"):
		return problem{
			code: "no_inbox", exit: exitFailed, err: err,
			hint: "there is no inbox in schema " + c.root.schema + ", or an old one: run 'outboxctl migrate up --inbox" +
				c.root.sameOutbox() + "'",
		}
	case code == "42501":
		return problem{
			code: "permission_denied", exit: exitNotLetIn, err: err, hint: "connect as the owner of the tables",
		}
	}
	return c.root.hint(err, "")
}
