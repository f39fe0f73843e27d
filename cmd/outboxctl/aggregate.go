package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newAggregate is the group of the commands about aggregates.
func newAggregate(root *rootCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "aggregate",
		Short: "Look at the events of one aggregate",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return errors.New("show is missing") },
	}
	cmd.AddCommand(newAggregateShow(root))
	return cmd
}

func newAggregateShow(root *rootCommand) *cobra.Command {
	var aggregateType, id string
	var limit int
	cmd := root.show(&cobra.Command{
		Use:   "show TYPE/ID",
		Short: "Show the events of an aggregate in their order, and what blocks them",
		Long: `Show the events of an aggregate in their order, and what blocks them: those that are open, up to 100, and the
newest. The viewer role is enough.`,
		Example: `  outboxctl aggregate show order/4711
  outboxctl aggregate show order/4711 --limit 100 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			var named bool
			if len(args) == 1 {
				aggregateType, id, named = strings.Cut(args[0], "/")
			}
			if !named || aggregateType == "" || id == "" {
				return errors.New("name one aggregate as TYPE/ID, for instance order/4711")
			}
			return nil
		},
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			found, err := op.Aggregate(ctx, aggregateType, id, limit)
			if errors.Is(err, operator.ErrNoEvent) {
				return notFound("%s/%s has no event in this outbox", aggregateType, id)
			}
			if err != nil {
				return err
			}
			if root.output != present.Table {
				return p.One(found, nil)
			}
			return showAggregate(root, p, found)
		})
	})
	cmd.Flags().IntVar(&limit, "limit", 20, "how many of the newest events, at most 1000")
	return cmd
}

// showAggregate prints an aggregate for people.
func showAggregate(root *rootCommand, p *present.Printer, found operator.Aggregate) error {
	now := time.Now()
	var holders []string
	for _, holder := range found.Holders {
		holders = append(holders, fmt.Sprintf("lane %d %s", holder.Lane, holderText(holder, now)))
	}
	count := plain(found.Looked)
	if !found.Complete {
		count += " events and more"
	} else if count += " event"; found.Looked != 1 {
		count += "s"
	}
	if err := p.Line(p.Paint(present.Bold, found.Type+"/"+found.ID), " has "+count+", ",
		p.Paint(present.Plain, strings.Join(holders, ", "))); err != nil {
		return err
	}
	for _, head := range found.Heads {
		if err := p.Line("later events wait behind ", p.Paint(present.Plain, head.Type+" "+head.ID.String()), ", which is ",
			p.Paint(styleOf(head.State), head.State)); err != nil {
			return err
		}
	}
	columns := eventColumns(now)
	topic := present.Column[operator.Event]{
		Name: "TOPIC", Of: func(e operator.Event) string { return cut(e.Topic, 30) }, Optional: true,
	}
	columns[3] = topic // in the place of the aggregate, which is the same everywhere
	if err := present.List(p, found.Events, "", columns...); err != nil {
		return err
	}
	open, over := found.Hidden()
	if open > 0 {
		root.notef("%d more that are open are not shown: --limit", open)
	}
	if over > 0 {
		root.notef("%d older ones that are published or discarded are not shown: --limit", over)
	}
	return nil
}
