package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// eventsTail follows events.
type eventsTail struct {
	root        *rootCommand
	args        []string
	every       time.Duration
	last, count int
}

func newEventsTail(root *rootCommand) *cobra.Command {
	c := &eventsTail{root: root}
	cmd := root.show(&cobra.Command{
		Use:   "tail [FILTER...]",
		Short: "Follow new events and what becomes of them",
		Long: `Follow new events and what becomes of them, until it is interrupted: a line for each event that is new,
and one for each change of its state. It asks the database once per second, for bounded answers; of what comes
faster than 5,000 events per second not all is shown, and a word says so.

` + filterHelp,
		Example: `  outboxctl events tail
  outboxctl events tail type:order_created -o ndjson
  outboxctl events tail state:dead --last 0`,
		Args: func(_ *cobra.Command, args []string) error { c.args = args; return nil },
	}, c.run)
	cmd.Flags().DurationVar(&c.every, "every", time.Second, "how often to look, at least 100ms")
	cmd.Flags().IntVar(&c.last, "last", 10, "begin with so many that are there already")
	cmd.Flags().IntVar(&c.count, "count", 0, "end after so many lines; 0: never")
	return cmd
}

func (c *eventsTail) run(ctx context.Context, p *present.Printer) error {
	filter, err := filterOf(c.args)
	switch {
	case err != nil:
		return err
	case c.every < 100*time.Millisecond:
		return usageError{fmt.Sprintf("--every %s is too often, use 100ms or more", c.every)}
	case c.last < 0 || c.last > 1000 || c.count < 0:
		return usageError{"--last is 0 to 1000, --count not below 0"}
	}
	var tail *operator.Tail
	shown := 0
	return c.root.watch(ctx, c.every, func(op *operator.Operator) (last bool, err error) {
		if tail == nil {
			tail = op.Tail(filter)
		}
		return c.look(ctx, p, tail, &shown)
	})
}

// look shows what is new. The last look is the one that has shown enough.
func (c *eventsTail) look(ctx context.Context, p *present.Printer, tail *operator.Tail, shown *int) (bool, error) {
	changes, left, err := tail.Next(ctx, c.last)
	if err != nil {
		return false, err
	}
	for _, change := range changes {
		if err := p.Stream(change, func() string { return changeLine(p, change) }); err != nil {
			return false, err
		}
		if *shown++; *shown == c.count {
			return true, nil
		}
	}
	if left {
		c.root.notef("there is more than can be shown")
	}
	return false, nil
}

// changeLine is what people see of an event that is new or has changed.
func changeLine(p *present.Printer, c operator.Change) string {
	stands := p.Paint(styleOf(c.State), c.State)
	if c.Was != "" {
		stands = p.Paint(present.Faint, c.Was+" →") + " " + stands
	}
	line := p.Paint(present.Faint, c.CreatedAt.UTC().Format("15:04:05Z")) + "  " + p.Paint(present.Plain,
		c.ID.String()+"  "+cut(c.Type, 40)+"  "+cut(c.AggregateType+"/"+c.AggregateID, 48)) + "  " + stands
	if c.LastError != "" && c.State != "published" {
		line += "  " + p.Paint(present.Plain, cut(c.LastError, 80))
	}
	return line
}
