package main

import (
	"cmp"
	"context"
	"errors"
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

// decisionFlags are who decides, and why.
type decisionFlags struct {
	root                  *rootCommand
	actor, reason, action string
}

func (d *decisionFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.actor, "actor", "", actorHelp)
	cmd.Flags().StringVar(&d.reason, "reason", "", "why")
	cmd.Flags().StringVar(&d.action, "action", "", "the id of an action that is sent again, because its answer was lost")
}

// id is the action's: a new one, unless it is sent again.
func (d *decisionFlags) id() (outbox.ID, error) {
	if d.action == "" {
		return outbox.NewID(), nil
	}
	id, err := outbox.ParseID(d.action)
	if err != nil {
		return id, usageError{fmt.Sprintf("--action: %.80q is no id", d.action)}
	}
	return id, nil
}

// decision is the action that is asked for.
func (d *decisionFlags) decision() (action operator.Action, err error) {
	action = operator.Action{Actor: d.root.actor(d.actor), Reason: d.reason}
	if action.ID, err = d.id(); err != nil {
		return action, err
	}
	if strings.TrimSpace(action.Reason) == "" {
		return action, usageError{"--reason is missing: whoever looks at this later wants to know"}
	}
	return action, nil
}

// act is one of the operator's verbs, on events that are named by their ids. The answer has the ids of new events,
// where the verb makes them, by the old ones.
type act func(ctx context.Context, action operator.Action, events ...outbox.ID) (
	results []operator.Result, made map[outbox.ID]outbox.ID, err error)

// changing is a verb that makes no new events.
func changing(do func(context.Context, operator.Action, ...outbox.ID) ([]operator.Result, error)) act {
	return func(ctx context.Context, action operator.Action, events ...outbox.ID) (
		[]operator.Result, map[outbox.ID]outbox.ID, error,
	) {
		results, err := do(ctx, action, events...)
		return results, nil, err
	}
}

// operateCommand decides about events that no relay decides about by itself: those that are named, or all that meet a
// filter, which is a job.
type operateCommand struct {
	decisionFlags
	job
	path, name, short, long string
	because                 string // a reason, as one could give it
	example                 string // a filter, as one could give it
	verb                    func(*operator.Operator) act
	otherwise               string // what there is for events that are in no state for it
	events                  []outbox.ID
}

// verbCommands are the verbs of dead events and those of events that wait, each of them a command.
func verbCommands(root *rootCommand) (dead, waiting []*cobra.Command) {
	verbs := []operateCommand{
		{
			path: "dead", name: "redrive", short: "Try dead events again",
			verb:    func(o *operator.Operator) act { return changing(o.Redrive) },
			because: "the topic takes them now", example: "topic:orders reason:rejected",
			long: `Try dead events again, now and with all their attempts, under the same ids. One that blocks its aggregate
keeps its place, and the events behind it wait until it is published.`,
		},
		{
			path: "dead", name: "discard", short: "Close dead events for good",
			verb:    func(o *operator.Operator) act { return changing(o.Discard) },
			because: "orders of a test, nobody waits for them", example: "tenant:test",
			long: `Close dead events for good: they are never published, retention may delete them, and the events that wait
behind them are published.`,
		},
		{
			path: "dead", name: "reissue", short: "Make new events of dead ones", otherwise: reissueHint,
			verb:    func(o *operator.Operator) act { return reissued(o.ReissueDead) },
			because: "consumers shall handle them as something new", example: "type:order_placed",
			long: `Make new events of dead ones, at the tail, each with an id of its own and the header reissue_of. The dead
ones are discarded, and the events that wait behind them are published. 'outboxctl replay
start --as reissue' does it to published and to discarded events.`,
		},
		{
			name: "skip", short: "Unblock the events that wait behind dead ones",
			verb:    func(o *operator.Operator) act { return changing(o.Skip) },
			because: "what comes after it does not need it", example: "aggregate:order/4711",
			long: `Unblock the events that wait behind dead ones: they are published. The dead ones stay dead, and can still be
redriven or discarded.`,
		},
		{
			name: "release", short: "Try parked events again",
			verb:    func(o *operator.Operator) act { return changing(o.Release) },
			because: "the relays know the type now", example: "type:order_placed",
			long: "Try parked events again, in their place. A relay whose registry knows their type does so by itself.",
		},
	}
	for i := range verbs {
		c := &verbs[i]
		c.root, c.job.verb = root, operator.Verb(c.name)
		if c.path != "" {
			dead = append(dead, c.command())
		} else {
			waiting = append(waiting, c.command())
		}
	}
	return dead, waiting
}

// idsOrFilter reads the arguments: ids of events, or a filter.
func idsOrFilter(args []string) (ids []outbox.ID, filter operator.Filter, err error) {
	if len(args) == 0 {
		return nil, filter, errors.New("name events by their ids, or write a filter: field:value")
	}
	for _, text := range args {
		if strings.TrimSpace(text) == "" { // of a variable that is not set, and not all events
			return nil, filter, errors.New("an argument is empty")
		}
		if id, err := outbox.ParseID(text); err == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == len(args) {
		return distinct(ids), filter, nil
	}
	if len(ids) > 0 {
		return nil, filter, errors.New("name events by their ids, or write a filter, not both")
	}
	filter, err = filterOf(args)
	if err == nil && len(filter.IDs) > 0 {
		err = errors.New("name events by their ids alone, without id: and a filter")
	}
	return nil, filter, err
}

func (c *operateCommand) command() *cobra.Command {
	path := strings.TrimSpace("outboxctl " + c.path)
	cmd := &cobra.Command{
		Use:   c.name + " EVENT_ID...|FILTER...",
		Short: c.short,
		Long:  c.long + "\n" + decideHelp + "No relay has to run.\n" + jobHelp,
		Example: fmt.Sprintf("  %[1]s %[2]s 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --reason \"%[3]s\"\n"+
			"  %[1]s %[2]s %[4]s --dry-run\n  %[1]s %[2]s %[4]s --rate 100 --reason \"%[3]s\"",
			path, c.name, c.because, c.example),
		Args: func(_ *cobra.Command, args []string) (err error) {
			c.events, c.spec.Filter, err = idsOrFilter(args)
			return err
		},
	}
	cmd.RunE = run(func(ctx context.Context, out io.Writer) error { return c.run(ctx, cmd.InOrStdin(), out) })
	cmd.Flags().VarP(&c.root.output, "output", "o", outputOfPlan)
	c.decisionFlags.add(cmd)
	c.addFlags(cmd)
	return cmd
}

const decideHelp = `
Who did it and why is written to outbox_actions in the same transaction. It needs the operator role.
Of events that are named by their ids each has a line of what came of it, and the exit code is 1 if one of them was not
in a state for it, or 3 if none of them is there.
`

func (c *operateCommand) run(ctx context.Context, in io.Reader, out io.Writer) error {
	if c.events == nil {
		return c.start(ctx, in, out, &c.decisionFlags)
	}
	if err := c.onlyOfJobs("rate", "max"); err != nil {
		return err
	}
	action, err := c.decision()
	if err != nil {
		return err
	}
	return c.root.operate(ctx, func(op *operator.Operator) error {
		results, made, err := c.verb(op)(ctx, action, c.events...)
		if err != nil {
			return ofAction(err, action.ID)
		}
		return hinted(outcomes{c.job.verb, action, results, made}.report(ctx, out, op), c.otherwise)
	})
}

// hinted adds what there is to do about an error, if there is one. An event that is not there nothing helps.
func hinted(err error, hint string) error {
	if known := (problem{}); err == nil || hint == "" || errors.As(err, &known) {
		return err
	}
	return problem{code: "failed", exit: exitFailed, err: err, hint: hint}
}
