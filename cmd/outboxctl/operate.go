package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

const actorHelp = "who decides (default: the USER of the environment, else the operating system's)"

// actor is who decides: the one that is named, or the user that runs this. In containers and under cron USER is not
// set, and a user without a name is known by its number.
func (c *rootCommand) actor(named string) string {
	if name := cmp.Or(named, c.getenv("USER")); name != "" {
		return name
	}
	if current, err := user.Current(); err == nil && current.Username != "" {
		return current.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// act is one of the operator's verbs.
type act func(ctx context.Context, action operator.Action, events ...outbox.ID) ([]operator.Result, error)

// operateCommand decides about events that no relay decides about by itself.
type operateCommand struct {
	root                  *rootCommand
	name, short, long     string
	because               string // a reason, as one could give it
	verb                  func(*operator.Operator) act
	actor, reason, action string
	events                []outbox.ID
}

// operateCommands are the verbs, each of them a command.
func operateCommands(root *rootCommand) []*cobra.Command {
	verbs := []operateCommand{
		{
			name: "redrive", short: "Try dead events again", verb: func(o *operator.Operator) act { return o.Redrive },
			because: "the topic takes it now",
			long: "Try dead events again, now and with all their attempts, under the same ids. One that blocks its aggregate " +
				"keeps\n" +
				"its place, and what waits behind it goes on waiting until it is published.",
		},
		{
			name: "skip", short: "Let go what waits behind dead events", verb: func(o *operator.Operator) act { return o.Skip },
			because: "what comes after it does not need it",
			long:    "Let go what waits behind dead events. They stay dead themselves, and can still be redriven or discarded.",
		},
		{
			name: "discard", short: "Close dead events for good", verb: func(o *operator.Operator) act { return o.Discard },
			because: "an order of a test, nobody waits for it",
			long: "Close dead events for good: they are never published, retention may delete them, and what waits behind " +
				"them\ngoes. It needs a reason.",
		},
		{
			name: "release", short: "Have parked events looked at again", verb: func(o *operator.Operator) act {
				return o.Release
			},
			because: "the relays know its type now",
			long: "Have parked events looked at again, in their place. A relay whose registry knows their type does so by " +
				"itself.",
		},
	}
	var commands []*cobra.Command
	for i := range verbs {
		verbs[i].root = root
		commands = append(commands, verbs[i].command())
	}
	return commands
}

func (c *operateCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   c.name + " EVENT_ID...",
		Short: c.short,
		Long: c.long + `

Who did it and why is written to outbox_actions in the same transaction. Each event has a line of what came of it,
and the exit code is 1 if one of them was not in a state for it. No relay has to run; it needs the operator role.`,
		Example: "  outboxctl " + c.name + ` 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --reason "` + c.because + `"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s takes ids of events", c.name)
			}
			for _, text := range args {
				id, err := outbox.ParseID(text)
				if err != nil {
					return fmt.Errorf("%.80q is no id of an event", text)
				}
				c.events = append(c.events, id)
			}
			return nil
		},
		RunE: run(c.run),
	}
	cmd.Flags().StringVar(&c.actor, "actor", "", actorHelp)
	cmd.Flags().StringVar(&c.reason, "reason", "", "why")
	cmd.Flags().StringVar(&c.action, "action", "", "the id of an action that is sent again, because its answer was lost")
	return cmd
}

func (c *operateCommand) run(ctx context.Context, out io.Writer) (err error) {
	action := operator.Action{ID: outbox.NewID(), Actor: c.root.actor(c.actor), Reason: c.reason}
	if c.action != "" {
		if action.ID, err = outbox.ParseID(c.action); err != nil {
			return usageError{fmt.Sprintf("--action: %.80q is no id", c.action)}
		}
	}
	if strings.TrimSpace(action.Reason) == "" {
		return usageError{"--reason is missing: whoever looks at this later wants to know"}
	}
	return c.root.operate(ctx, func(op *operator.Operator) error {
		results, err := c.verb(op)(ctx, action, c.events...)
		if err != nil {
			return fmt.Errorf("%w (action %s)", err, action.ID)
		}
		return c.report(out, action, results)
	})
}

// report prints what came of each event, and fails if that was nothing.
func (c *operateCommand) report(out io.Writer, action operator.Action, results []operator.Result) error {
	left := 0
	for _, result := range results {
		was := result.Was
		if was != "" {
			was = ", was " + was
		}
		if err := say(out, "%s %s%s\n", result.Event, result.Outcome, was); err != nil {
			return err
		}
		if result.Outcome != operator.Done && result.Outcome != operator.DoneBefore {
			left++
		}
	}
	if left > 0 {
		return fmt.Errorf("%s: %d of %d events were in no state for it, or are not there", c.name, left, len(results))
	}
	return say(out, "%s: %d events, action %s\n", c.name, len(results), action.ID)
}
