package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newReplay is the group of the commands that send published events again.
func newReplay(root *rootCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Send published events again",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("plan, start, status, pause, resume or cancel is missing")
		},
	}
	cmd.AddCommand(newReplayStart(root, true), newReplayStart(root, false), newJobShow(root, "replay", "status"),
		newJobChange(root, "replay", "pause"), newJobChange(root, "replay", "resume"),
		newJobChange(root, "replay", "cancel"))
	return cmd
}

// replayCommand sends published events again.
type replayCommand struct {
	decisionFlags
	job
	as     string
	again  bool
	events []outbox.ID
}

const replayHelp = ` published events again, for a consumer that was deployed later or has lost something, while the
events are retained. There are two ways, --as:

  redeliver  the same ids and bytes, with the attribute redelivered, to where the events' types go or to --topic. The
             relays send the copies beside live events, those of an aggregate in the order of the events. A consumer
             that has handled an event and still knows its id does nothing. Of events that are named by their ids this
             command only asks for the copies: 'outboxctl replay status ACTION' shows when they are sent.
  reissue    new events at the tail, with ids of their own and the header reissue_of. Every consumer handles them. Of
             events that are named by their ids, those that were issued again before need --again.
`

func newReplayStart(root *rootCommand, plan bool) *cobra.Command {
	c := &replayCommand{decisionFlags: decisionFlags{root: root}}
	cmd := &cobra.Command{
		Use:   "start EVENT_ID...|FILTER...",
		Short: "Send published events again, by their ids or a filter",
		Long:  "Send" + replayHelp + decideHelp + jobHelp,
		Example: `  outboxctl replay start 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --reason "a consumer lost it"
  outboxctl replay start type:order_placed 'created:<7d' --topic orders-new --reason "a new consumer wants them"
  outboxctl replay start topic:orders created:2026-01-31 --as reissue --reason "all of that day is billed again"`,
	}
	if plan {
		c.dryRun = true
		cmd.Use, cmd.Short = "plan FILTER...", "Count which published events a filter means"
		cmd.Long = `Count which published events a filter means, by type, with the first and the last and some of them.
Nothing is changed. The viewer role is enough.`
		cmd.Example = "  outboxctl replay plan type:order_placed 'created:<7d'"
	}
	cmd.Args = func(_ *cobra.Command, args []string) (err error) {
		if c.events, c.spec.Filter, err = idsOrFilter(args); err == nil && plan && c.events != nil {
			err = errors.New("a plan is of a filter")
		}
		return err
	}
	cmd.RunE = run(func(ctx context.Context, out io.Writer) error { return c.run(ctx, cmd.InOrStdin(), out) })
	cmd.Flags().VarP(&root.output, "output", "o", outputOfPlan)
	if plan {
		cmd.Flags().StringVar(&c.spec.Topic, "topic", "", "where the copies would go: the same events are meant")
		return cmd
	}
	cmd.Flags().StringVar(&c.as, "as", "redeliver", "redeliver or reissue")
	cmd.Flags().StringVar(&c.spec.Topic, "topic", "", "send the copies there (default: where the events' types go)")
	cmd.Flags().BoolVar(&c.again, "again", false, "with --as reissue, "+againHelp)
	c.decisionFlags.add(cmd)
	c.addFlags(cmd)
	return cmd
}

func (c *replayCommand) run(ctx context.Context, in io.Reader, out io.Writer) error {
	switch c.as {
	case "", "redeliver":
		c.verb = operator.VerbRedeliver
	case "reissue":
		c.verb = operator.VerbReissue
		if c.spec.Topic != "" {
			return usageError{"--topic is for copies: a reissued event goes where its type goes"}
		}
		if c.events == nil && len(c.spec.Filter.States) == 0 {
			c.spec.Filter.States = []string{"published"}
		}
	default:
		return usageError{fmt.Sprintf("--as %.40q: it is redeliver or reissue", c.as)}
	}
	if c.again && (c.events == nil || c.verb != operator.VerbReissue) {
		return usageError{"--again is for --as reissue, of events that are named by their ids"}
	}
	if c.events == nil {
		return c.start(ctx, in, out, &c.decisionFlags)
	}
	ofJobs := []string{"max"}
	if c.verb == operator.VerbReissue { // copies that are named have a rate, too
		ofJobs = append(ofJobs, "rate")
	}
	if err := c.onlyOfJobs(ofJobs...); err != nil {
		return err
	}
	action, err := c.decision()
	if err != nil {
		return err
	}
	return c.root.operate(ctx, func(op *operator.Operator) error {
		do := reissued(op.Reissue)
		switch {
		case c.again:
			do = reissued(op.ReissueAgain)
		case c.verb == operator.VerbRedeliver:
			how := operator.Redelivery{Topic: c.spec.Topic, Rate: c.spec.Rate}
			do = changing(func(ctx context.Context, action operator.Action, events ...outbox.ID) ([]operator.Result, error) {
				return op.Redeliver(ctx, action, how, events...)
			})
		}
		results, made, err := do(ctx, action, c.events...)
		if err != nil {
			return ofAction(err, action.ID)
		}
		return hintedAgain(outcomes{c.verb, action, results, made}.report(ctx, out, op), results, made)
	})
}
