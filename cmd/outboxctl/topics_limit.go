package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// oneTopic takes the name of a topic as the only argument.
func oneTopic(into *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("%s takes the name of one topic", cmd.CommandPath())
		}
		*into = args[0]
		return nil
	}
}

// newTopicsPause has the relays publish nothing to a topic.
func newTopicsPause(root *rootCommand) *cobra.Command {
	c := &orderCommand{root: root}
	cmd := &cobra.Command{
		Use:   "pause TOPIC",
		Short: "Have the relays stop publishing to a topic",
		Long: `Have all relays stop publishing to a topic, until 'outboxctl topics resume'. 'outboxctl pause' does it for an
event type or for everything, and says what a pause is.

The role needs what 'outboxctl grant operator' gives. Who and why are kept in outbox_actions.`,
		Example: `  outboxctl topics pause orders --reason "consumers are broken" --actor ada`,
		Args:    oneTopic(&c.topic),
		RunE:    run(c.pause),
	}
	c.addDecisionFlags(cmd, "why; whoever resumes will want to know")
	return cmd
}

// newTopicsResume lets the relays publish to a topic again.
func newTopicsResume(root *rootCommand) *cobra.Command {
	c := &orderCommand{root: root}
	cmd := &cobra.Command{
		Use:   "resume TOPIC",
		Short: "Resume publishing to a topic that was paused",
		Long: `Resume publishing to a topic that was paused by its name, from where it stopped. All relays do so within
about a second. A pause of everything ('outboxctl pause --all') stays.`,
		Example: `  outboxctl topics resume orders --reason "consumers are repaired"`,
		Args:    oneTopic(&c.topic),
		RunE:    run(c.resume),
	}
	c.addDecisionFlags(cmd, "why")
	return cmd
}

// limitCommand limits a topic.
type limitCommand struct {
	orderCommand
	rate float64 // zero: no limit
}

// newTopicsLimit has the relays publish to a topic no faster than a rate.
func newTopicsLimit(root *rootCommand) *cobra.Command {
	c := &limitCommand{orderCommand: orderCommand{root: root}}
	cmd := &cobra.Command{
		Use:   "limit TOPIC RATE|none",
		Short: "Limit how many events per second all relays together publish to a topic",
		Long: `Limit how many events per second all relays together publish to a topic, or lift that with 'none'. It protects
a consumer that comes back after an outage from everything that waited. 'outboxctl topics' lists what stands.

Relays that run keep to it within about a second; those that start later know it before they publish anything.
Each takes the share of the lanes that it holds, so together they are never faster than the limit, but for a tenth of a
second's worth and one event of each relay. They are slower where the events of the topic are in the lanes of some
relays only. Retries count, and copies of published events. Nothing is lost, charged or killed, the order is kept, and
other topics are not affected.

The role needs what 'outboxctl grant operator' gives. Who and why are kept in outbox_actions.`,
		Example: `  outboxctl topics limit orders 200 --reason "consumers come back slowly"
  outboxctl topics limit orders 0.5 --reason "one every two seconds"
  outboxctl topics limit orders none --reason "they have caught up"`,
		Args: c.parse,
		RunE: run(c.limit),
	}
	c.addDecisionFlags(cmd, "why; whoever lifts it will want to know")
	return cmd
}

func (c *limitCommand) parse(_ *cobra.Command, args []string) (err error) {
	if len(args) != 2 || args[0] == "" {
		return errors.New("topics limit takes the name of a topic, and events per second or none")
	}
	c.topic = args[0]
	if args[1] == "none" {
		return nil
	}
	c.rate, err = strconv.ParseFloat(args[1], 64)
	if err != nil || !(c.rate >= operator.MinRate && c.rate <= operator.MaxRate) {
		return fmt.Errorf("%.80q is no limit: write events per second, from %s to %d, or none; 'outboxctl topics pause' "+
			"stops all", args[1], operator.PerSecond(operator.MinRate), operator.MaxRate)
	}
	return nil
}

func (c *limitCommand) limit(ctx context.Context, out io.Writer) error {
	who := "whoever lifts it"
	if c.rate == 0 {
		who = "whoever looks at this later"
	}
	return c.do(ctx, who, func(op *operator.Operator, action operator.Action, _ operator.Scope) error {
		if c.rate == 0 {
			outcome, err := op.Unlimit(ctx, action, c.topic)
			switch {
			case err != nil:
				return err
			case outcome == operator.NotApplicable:
				return fmt.Errorf("topic %s has no limit", c.topic)
			case outcome == operator.DoneBefore:
				return c.limitedBefore(ctx, out, op)
			}
			return say(out, "topic %s has no limit any more: the relays know it within about a second\n", c.topic)
		}
		outcome, err := op.Limit(ctx, action, c.topic, c.rate)
		switch {
		case err != nil:
			return err
		case outcome == operator.NotApplicable:
			return fmt.Errorf("topic %s is limited to %s per second already", c.topic, operator.PerSecond(c.rate))
		case outcome == operator.DoneBefore:
			return c.limitedBefore(ctx, out, op)
		}
		c.noteUnknownTopic(ctx, op)
		return say(out, "topic %s is limited to %s per second, by all relays together, from about a second on\n", c.topic,
			operator.PerSecond(c.rate))
	})
}

// limitedBefore says that the same action was done before, and what stands now.
func (c *limitCommand) limitedBefore(ctx context.Context, out io.Writer, op *operator.Operator) error {
	limits, err := op.Limits(ctx)
	if err != nil {
		return err
	}
	stands := "topic " + c.topic + " has no limit"
	for _, limit := range limits {
		if limit.Topic == c.topic {
			stands = clean.Line(limit.String()) // whoever limited it chose the words
		}
	}
	return say(out, "that was done before by this action, and nothing is changed now; what stands:\n%s\n", stands)
}
