package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newDead is the group of the commands about dead letters.
func newDead(root *rootCommand, verbs []*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Look at dead letters, and decide about them",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("list, redrive, discard, reissue or edit is missing")
		},
	}
	cmd.AddCommand(newDeadList(root), newDeadEdit(root))
	cmd.AddCommand(verbs...)
	return cmd
}

// deadPage is a page of dead letters, for programs.
type deadPage struct {
	Letters []operator.DeadLetter `json:"letters"`
	Next    string                `json:"next,omitempty"`
}

func newDeadList(root *rootCommand) *cobra.Command {
	var filterArgs []string
	var all bool
	var limit int
	var after string
	cmd := root.show(&cobra.Command{
		Use:   "list [FILTER...]",
		Short: "List dead letters that nobody has decided about, the newest first",
		Long: `List dead letters that nobody has redriven, discarded or reissued, the newest first; --all lists the others as
well. The filter has field:value terms of type, aggregate, tenant, namespace, topic, reason and id, as in 'outboxctl
events list'. The viewer role is enough.

The reason is one of max_attempts, unknown_event_type, invalid_payload, aggregate_mismatch, too_large, rejected and
crash_suspect: reason:max_attempts lists those of one reason.

One page reads at most 10,000 dead letters. If few of them match, a page can be empty although there is a next one.
'outboxctl dead redrive', 'discard' and 'reissue' take the same filter, or ids of events.`,
		Example: `  outboxctl dead list
  outboxctl dead list topic:orders reason:max_attempts
  outboxctl dead list --all -o ndjson`,
		Args: func(_ *cobra.Command, args []string) error { filterArgs = args; return nil },
	}, func(ctx context.Context, p *present.Printer) error {
		filter, err := filterOf(filterArgs)
		if err != nil {
			return err
		}
		letters, err := filter.DeadLetters()
		if err != nil {
			return usageError{err.Error()}
		}
		letters.Unresolved, letters.Limit, letters.After = !all, limit, after
		return root.look(ctx, func(op *operator.Operator) error {
			page, err := op.DeadLetters(ctx, letters)
			if err != nil {
				return err
			}
			return showLetters(root, p, page)
		})
	})
	cmd.Flags().BoolVar(&all, "all", false, "also those that somebody has redriven, discarded or reissued")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many, at most 1000")
	cmd.Flags().StringVar(&after, "after", "", "where the page before ended, as that said")
	return cmd
}

func showLetters(root *rootCommand, p *present.Printer, page operator.DeadLetterPage) error {
	if root.output == present.JSON {
		if page.Letters == nil {
			page.Letters = []operator.DeadLetter{}
		}
		return p.One(deadPage{Letters: page.Letters, Next: page.Next}, nil)
	}
	now := time.Now()
	none := "nothing is dead that meets this"
	if page.Next != "" {
		none = "nothing on this page is dead that meets this"
	}
	err := present.List(p, page.Letters, none, []present.Column[operator.DeadLetter]{
		{Name: "DIED", Of: func(d operator.DeadLetter) string { return ago(d.FailedAt, now) }, Right: true},
		{Name: "REASON", Of: func(d operator.DeadLetter) string { return d.Reason }, Style: func(d operator.DeadLetter,
		) present.Style {
			if d.Resolved != "" {
				return present.Faint
			}
			return present.Bad
		}},
		{Name: "TYPE", Of: func(d operator.DeadLetter) string { return cut(d.Type, 40) }},
		{Name: "AGGREGATE", Of: func(d operator.DeadLetter) string { return cut(d.AggregateType+"/"+d.AggregateID, 48) }},
		{Name: "TOPIC", Of: func(d operator.DeadLetter) string { return cut(d.Topic, 30) }, Optional: true},
		{Name: "TRIES", Of: func(d operator.DeadLetter) string { return plain(d.Attempts) }, Right: true},
		{Name: "BLOCKS", Of: func(d operator.DeadLetter) string {
			if d.Blocking && d.Resolved == "" {
				return "yes"
			}
			return ""
		}, Optional: true},
		{Name: "DECIDED", Of: func(d operator.DeadLetter) string {
			if d.Resolved == "" {
				return ""
			}
			return d.Resolved + " by " + cut(d.ResolvedBy, 20)
		}, Optional: true},
		{Name: "ERASED", Of: func(d operator.DeadLetter) string {
			if d.Erased {
				return "yes"
			}
			return ""
		}, Optional: true},
		{Name: "EVENT", Of: func(d operator.DeadLetter) string { return d.Event.String() }},
		{Name: "ERROR", Of: func(d operator.DeadLetter) string { return cut(d.Detail, 60) }, Optional: true},
	}...)
	if err == nil && page.Next != "" {
		root.notef("there is more: --after %s", page.Next)
	}
	return err
}
