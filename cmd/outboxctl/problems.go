package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newProblems lists what goes wrong.
func newProblems(root *rootCommand) *cobra.Command {
	return root.show(&cobra.Command{
		Use:   "problems",
		Short: "List what goes wrong, grouped by type, topic and error",
		Long: `List what goes wrong: attempts that failed, dead letters that nobody has resolved, and topics that relays have
paused. They are grouped by event type, topic and the words of the error, without its numbers, ids and quotes, the last
seen first, each with an event of it for 'outboxctl events explain'.

The newest 10,000 attempts and dead letters are looked at; it says so if there are more, with -o json in the field
complete. The viewer role is enough.`,
		Example: "  outboxctl problems\n  outboxctl problems -o json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			found, err := op.Problems(ctx)
			if err != nil {
				return err
			}
			if root.output == present.JSON {
				return p.One(found, nil) // it has the field complete
			}
			if err := present.List(p, found.Problems, "nothing goes wrong", problemColumns(time.Now())...); err != nil {
				return err
			}
			if !found.Complete {
				root.notef("looked at the newest %d dead letters and %d attempts; there may be more", found.Letters, found.Attempts)
			}
			return nil
		})
	})
}

func problemColumns(now time.Time) []present.Column[operator.Problem] {
	return []present.Column[operator.Problem]{
		{Name: "COUNT", Right: true, Of: func(p operator.Problem) string { return strconv.FormatInt(p.Count, 10) }},
		{Name: "FIRST", Of: func(p operator.Problem) string { return ago(p.First, now) }},
		{Name: "LAST", Of: func(p operator.Problem) string { return ago(p.Last, now) }},
		{
			Name: "CLASS", Of: func(p operator.Problem) string { return p.Class },
			Style: func(operator.Problem) present.Style { return present.Bad },
		},
		{Name: "TYPE", Of: func(p operator.Problem) string { return p.EventType }, Optional: true},
		{Name: "TOPIC", Of: func(p operator.Problem) string { return p.Topic }, Optional: true},
		{Name: "ERROR", Of: func(p operator.Problem) string { return cut(p.Error, 80) }},
		{Name: "EXAMPLE", Of: func(p operator.Problem) string { return p.Example }, Optional: true},
	}
}
