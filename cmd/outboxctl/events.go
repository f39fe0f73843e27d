package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newEvents is the group of the commands that look at events.
func newEvents(root *rootCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Find events, and say why they wait",
		Long: `Find events, and say why they wait. The viewer role is enough; payloads need a role that may read all of
outbox_events. 'erase' alone changes something, with --yes, and needs the operator role.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("list, get, explain, tail, export or erase is missing")
		},
	}
	cmd.AddCommand(newEventsList(root), newEventsGet(root), newEventsExplain(root), newEventsTail(root),
		newEventsExport(root), newEventsErase(root))
	return cmd
}

// eventsList lists events.
type eventsList struct {
	root *rootCommand
	page operator.Page
	args []string
}

func newEventsList(root *rootCommand) *cobra.Command {
	c := &eventsList{root: root}
	cmd := root.show(&cobra.Command{
		Use:   "list [FILTER...]",
		Short: "List events, the newest first",
		Long: `List events, the newest first, by the time in their ids.

` + filterHelp + `

Events are found by id, by aggregate, and by the states of held and dead ones; by type as well where there is the index
of 'outboxctl migrate lookups add type'. A search that no index answers looks at the newest 50,000 events, or at 5,000
payloads, says how far back that was, and how to go on.`,
		Example: `  outboxctl events list
  outboxctl events list state:dead type:order_created
  outboxctl events list aggregate:order/4711
  outboxctl events list 'error:connection refused' 'created:<2h' -o json`,
		Args: func(_ *cobra.Command, args []string) error { c.args = args; return nil },
	}, c.run)
	cmd.Flags().IntVar(&c.page.Limit, "limit", 50, "how many events, at most 1000, or 100 with payloads")
	cmd.Flags().StringVar(&c.page.After, "after", "", "where the page before ended, as that said")
	cmd.Flags().BoolVar(&c.page.Payloads, "payload", false, "with payload, headers and dedupe key (JSON only)")
	return cmd
}

func (c *eventsList) run(ctx context.Context, p *present.Printer) error {
	filter, err := filterOf(c.args)
	if err != nil {
		return err
	}
	return c.root.look(ctx, func(op *operator.Operator) error {
		page, err := op.Events(ctx, filter, c.page)
		if err != nil {
			return err
		}
		if c.root.output == present.JSON {
			if page.Events == nil {
				page.Events = []operator.Event{}
			}
			return p.One(page, nil)
		}
		none := "no event meets this"
		if !page.Window.Complete {
			none = "none of the events that were looked at meets this"
		}
		if err := present.List(p, page.Events, none, eventColumns(time.Now())...); err != nil {
			return err
		}
		c.say(page)
		return nil
	})
}

// say tells how far it looked.
func (c *eventsList) say(page operator.EventPage) {
	now := time.Now()
	if w := page.Window; !w.Complete && w.Since != nil && len(page.Events) < c.page.Limit {
		c.root.notef("no index answers this: looked at the newest %d events, back to %s", w.Looked, ago(*w.Since, now))
	}
	if page.Next != "" {
		c.root.notef("there is more: --after %s", page.Next)
	}
}

// eventColumns are those of a list of events.
func eventColumns(now time.Time) []present.Column[operator.Event] {
	return []present.Column[operator.Event]{
		{Name: "CREATED", Of: func(e operator.Event) string { return ago(e.CreatedAt, now) }, Right: true},
		{
			Name: "STATE", Of: func(e operator.Event) string {
				if e.Erased {
					return e.State + ", erased"
				}
				return e.State
			},
			Style: func(e operator.Event) present.Style { return styleOf(e.State) },
		},
		{Name: "TYPE", Of: func(e operator.Event) string { return cut(e.Type, 40) }},
		{Name: "AGGREGATE", Of: func(e operator.Event) string { return cut(e.AggregateType+"/"+e.AggregateID, 48) }},
		{Name: "TENANT", Of: func(e operator.Event) string { return cut(e.Tenant, 20) }, Optional: true},
		{Name: "TRIES", Of: func(e operator.Event) string {
			if e.Attempts == 0 {
				return ""
			}
			return plain(e.Attempts)
		}, Right: true, Optional: true},
		{Name: "DUE", Of: func(e operator.Event) string { return agoOf(e.DueAt, now) }, Optional: true},
		{Name: "ID", Of: func(e operator.Event) string { return e.ID.String() }},
		{Name: "ERROR", Of: func(e operator.Event) string {
			if e.State == "published" { // an attempt that failed before it is history
				return ""
			}
			return cut(e.LastError, 60)
		}, Optional: true},
	}
}
