package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newAuditLog shows who did what.
func newAuditLog(root *rootCommand) *cobra.Command {
	var filter operator.ActionFilter
	var event, until string
	var since time.Duration
	cmd := root.show(&cobra.Command{
		Use:   "log",
		Short: "Show who did what, and why, the newest first",
		Long: `Show who did what, and why, the newest first. The verbs are redrive, skip, release, discard, reissue,
redeliver, cancel, erase, pause, resume and limit, fail of a job that could not go on, and look: somebody has seen the
payload of that event. Each line was written in the same transaction as the change itself. ACTOR is who decided, as
they said, and the worker of a job that failed; ROLE is the database role that had logged in, which nobody can write.

One page reads at most 10,000 lines. If few of them match, a page can be empty although there is a next one. An action
is deleted together with the dead letter that it resolved. The viewer role is enough.`,
		Example: `  outboxctl audit log
  outboxctl audit log --actor ada --verb discard --since 168h
  outboxctl audit log --event 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e -o json`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) (err error) {
		if event != "" {
			if filter.Event, err = outbox.ParseID(event); err != nil {
				return usageError{fmt.Sprintf("--event %.80q is no id of an event", event)}
			}
		}
		if since < 0 {
			return usageError{"--since must not be below 0"}
		}
		if since > 0 {
			filter.Since = time.Now().Add(-since)
		}
		if until != "" {
			if filter.Until, err = time.Parse(time.RFC3339, until); err != nil {
				return usageError{fmt.Sprintf("--until %.80q is no time like 2026-01-31T00:00:00Z", until)}
			}
		}
		return root.look(ctx, func(op *operator.Operator) error {
			page, err := op.Actions(ctx, filter)
			if err != nil {
				return err
			}
			return showActions(root, p, page)
		})
	})
	flags := cmd.Flags()
	flags.StringVar(&filter.Actor, "actor", "", "only what this one decided")
	flags.StringVar(&filter.Verb, "verb", "", "only this one of the verbs above")
	flags.StringVar(&filter.Role, "role", "", "only what this database role did")
	flags.StringVar(&event, "event", "", "only what was done about this event, by its id")
	flags.DurationVar(&since, "since", 0, "only what was done in the last so long (default: all)")
	flags.StringVar(&until, "until", "", "only what was done before, as 2026-01-31T12:00:00Z")
	flags.IntVar(&filter.Limit, "limit", 50, "how many, at most 1000")
	flags.StringVar(&filter.After, "after", "", "where the page before ended, as that said")
	return cmd
}

func showActions(root *rootCommand, p *present.Printer, page operator.ActionPage) error {
	if root.output == present.JSON {
		if page.Actions == nil {
			page.Actions = []operator.LoggedAction{}
		}
		return p.One(page, nil)
	}
	now := time.Now()
	none := "nobody did anything that meets this"
	if page.Next != "" {
		none = "nothing on this page meets this"
	}
	err := present.List(p, page.Actions, none, []present.Column[operator.LoggedAction]{
		{Name: "WHEN", Of: func(a operator.LoggedAction) string { return ago(a.At, now) }, Right: true},
		{Name: "ACTOR", Of: func(a operator.LoggedAction) string { return cut(a.Actor, 30) }},
		{Name: "ROLE", Of: func(a operator.LoggedAction) string { return cut(a.Role, 30) }},
		{Name: "VERB", Of: func(a operator.LoggedAction) string { return a.Verb }},
		{Name: "WHAT", Of: func(a operator.LoggedAction) string {
			if a.Event != nil {
				return a.Event.String()
			}
			return cut(a.Target, 60)
		}},
		{Name: "REASON", Of: func(a operator.LoggedAction) string { return cut(a.Reason, 80) }, Optional: true},
	}...)
	if err == nil && page.Next != "" {
		root.notef("there is more: --after %s", page.Next)
	}
	return err
}
