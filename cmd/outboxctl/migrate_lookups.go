package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newMigrateLookups is the group of the commands about what is optional.
func newMigrateLookups(root *rootCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lookups",
		Short: "Add or drop what answers questions about many events",
		Long: `Add or drop what answers questions about many events, within 100 ms on a table of 5 million. By id, by
aggregate and by the states of held and dead events there are indexes already. The others are optional:

  type       an index by event type and number. Every emit writes into it: 658 bytes of WAL where it is 551 without, as
             'make bench-look' counts.
  published  a function for people with psql, outbox_id_at: by time events are asked by their ids, which begin with it.
             It costs an emit nothing, and 'outboxctl events list published:...' does not need it. There is no index on
             published_at: with one every publish would write into every index of the table.

Without the index a search by type looks at the newest 50,000 events, and says so.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return errors.New("add or drop is missing") },
	}
	cmd.AddCommand(lookupsCommand(root, "add", "Add optional look-ups, while producers write", "added",
		(*operator.Operator).AddLookup), lookupsCommand(root, "drop", "Drop optional look-ups", "dropped",
		(*operator.Operator).DropLookup))
	return cmd
}

func lookupsCommand(root *rootCommand, verb, short, done string,
	do func(*operator.Operator, context.Context, operator.Lookup) (bool, error),
) *cobra.Command {
	lookups := operator.Lookups()
	long := short + ": all of them, or those that are named.\n\n"
	if verb == "add" {
		long += "An index is built with CREATE INDEX CONCURRENTLY: nobody waits for it, and it waits for the transactions " +
			"that are\nopen. What a building that was cut off has left is taken away first. "
	} else {
		long += "It waits for the transactions that are open, and nobody waits for it. "
	}
	return &cobra.Command{
		Use:   verb + " [published|type]...",
		Short: short,
		Long:  long + "It takes the owner of the tables.",
		Example: "  outboxctl migrate lookups " + verb + "\n  outboxctl migrate lookups " + verb +
			" type --schema billing",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				lookups = nil
			}
			for _, name := range args {
				if !slices.Contains(operator.Lookups(), operator.Lookup(name)) {
					return fmt.Errorf("there is no look-up %.80q: use published or type", name)
				}
				lookups = append(lookups, operator.Lookup(name))
			}
			return nil
		},
		RunE: run(func(ctx context.Context, out io.Writer) error {
			conn, err := root.connect(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			op := operator.New(conn, root.schema)
			err = change(ctx, out, op, verb, done, lookups, do)
			if state := sqlState(nil); errors.As(err, &state) && state.SQLState() == "42501" {
				return problem{code: "permission_denied", exit: exitNotLetIn, err: err, hint: "connect as the owner of the tables"}
			}
			return root.hint(err, "viewer")
		}),
	}
}

// change adds or drops, one after the other, and says so.
func change(ctx context.Context, out io.Writer, op *operator.Operator, verb, done string, lookups []operator.Lookup,
	do func(*operator.Operator, context.Context, operator.Lookup) (bool, error),
) error {
	for _, lookup := range lookups {
		begun := time.Now()
		changed, err := do(op, ctx, lookup)
		if err != nil {
			return err
		}
		what := done + " in " + time.Since(begun).Round(time.Millisecond).String()
		if !changed {
			what = map[string]string{"add": "was there already", "drop": "was not there"}[verb]
		}
		if err := say(out, "%s: %s\n", lookup, what); err != nil {
			return err
		}
	}
	return nil
}
