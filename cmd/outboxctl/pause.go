package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newPause has the relays publish nothing of a scope.
func newPause(root *rootCommand) *cobra.Command {
	c := &orderCommand{root: root}
	cmd := &cobra.Command{
		Use:   "pause --all | --type NAME",
		Short: "Have the relays stop publishing: everything, or an event type",
		Long: `Have all relays stop publishing everything, or an event type, until 'outboxctl resume'. 'outboxctl topics
pause' does it for a topic.

Relays that run stop within about a second; those that start later know it before they publish anything.
What is in flight finishes. Nothing is lost, charged or killed, and the order is kept: behind an event of
a paused type, later events of its aggregate on the same topic wait as well.

The role needs what 'outboxctl grant operator' gives. Who and why are kept in outbox_actions.`,
		Example: `  outboxctl pause --all --reason "the broker is being moved"
  outboxctl pause --type order_created --reason "wrong amounts since 02:40" --actor ada`,
		Args: cobra.NoArgs,
		RunE: run(c.pause),
	}
	c.addFlags(cmd, "why; whoever resumes will want to know")
	return cmd
}

// newResume lets the relays go on.
func newResume(root *rootCommand) *cobra.Command {
	c := &orderCommand{root: root}
	cmd := &cobra.Command{
		Use:   "resume --all | --type NAME | --restored",
		Short: "Resume publishing what was paused",
		Long: `Resume publishing what was paused, from where it stopped. All relays do so within about a second.

Each pause is resumed by itself: --all leaves a topic paused that was paused by its name, which 'outboxctl topics
resume' ends. 'outboxctl pauses' lists what stands.

--restored is for a database that was restored or copied, where relays pause by themselves because events in it may have
been sent before. Their log says once per minute how many they would send again, and 'outboxctl events list state:open'
lists them. After it they are sent: consumers that still know the ids ignore them.`,
		Example: `  outboxctl resume --all --reason "the broker has moved"
  outboxctl resume --type order_created --reason "the amounts are right again"
  outboxctl resume --restored --reason "restored on purpose, consumers know the ids"`,
		Args: cobra.NoArgs,
		RunE: run(c.resume),
	}
	c.addFlags(cmd, "why")
	cmd.Flags().BoolVar(&c.restored, "restored", false, "publish from a database that was restored or copied")
	return cmd
}

// orderCommand is what pause, resume and those of topics share.
type orderCommand struct {
	root             *rootCommand
	all, restored    bool
	topic, eventType string
	actor, reason    string
	action           string
}

func (c *orderCommand) addFlags(cmd *cobra.Command, reason string) {
	cmd.Flags().BoolVar(&c.all, "all", false, "everything")
	cmd.Flags().StringVar(&c.eventType, "type", "", "events of this type")
	c.addDecisionFlags(cmd, reason)
}

// addDecisionFlags adds who, why, and the id.
func (c *orderCommand) addDecisionFlags(cmd *cobra.Command, reason string) {
	cmd.Flags().StringVar(&c.reason, "reason", "", reason)
	cmd.Flags().StringVar(&c.actor, "actor", "", actorHelp)
	cmd.Flags().StringVar(&c.action, "action", "", "the id of an action that is sent again, because its answer was lost")
}

// scope is what the flags name.
func (c *orderCommand) scope() (scope operator.Scope, err error) {
	named := 0
	for _, flag := range []struct {
		given bool
		scope operator.Scope
	}{
		{c.all, operator.AllScope},
		{c.topic != "", operator.TopicScope(c.topic)},
		{c.eventType != "", operator.TypeScope(c.eventType)},
		{c.restored, operator.RestoredScope},
	} {
		if flag.given {
			scope = flag.scope
			named++
		}
	}
	if named != 1 {
		return scope, usageError{"name one thing: --all or --type NAME; 'outboxctl topics' has topics"}
	}
	return scope, nil
}

func (c *orderCommand) pause(ctx context.Context, out io.Writer) error {
	return c.do(ctx, "whoever resumes", func(op *operator.Operator, action operator.Action,
		scope operator.Scope,
	) error {
		outcome, err := op.Pause(ctx, action, scope)
		switch {
		case err != nil:
			return err
		case outcome == operator.NotApplicable:
			return c.standing(ctx, op, scope.String()+" is paused already")
		case outcome == operator.DoneBefore:
			return c.before(ctx, out, op, "the pause of "+scope.String())
		}
		c.noteUnknownTopic(ctx, op)
		return say(out, "%s is paused: no relay publishes it from about a second on\n", scope)
	})
}

func (c *orderCommand) resume(ctx context.Context, out io.Writer) error {
	return c.do(ctx, "whoever looks at this later", func(op *operator.Operator, action operator.Action,
		scope operator.Scope,
	) error {
		outcome, err := op.Resume(ctx, action, scope)
		switch {
		case err != nil:
			return err
		case outcome == operator.NotApplicable && scope == operator.RestoredScope:
			return errors.New("the outbox is where the relays left it: nothing is paused because of a restore")
		case outcome == operator.NotApplicable:
			return c.standing(ctx, op, scope.String()+" is not paused")
		case outcome == operator.DoneBefore:
			return c.before(ctx, out, op, "the resume of "+scope.String())
		}
		return say(out, "%s is resumed: the relays go on within about a second\n", scope)
	})
}

// before says that the same action was done before, and what stands now: somebody may have decided otherwise since.
func (c *orderCommand) before(ctx context.Context, out io.Writer, op *operator.Operator, what string) error {
	pauses, err := op.Pauses(ctx)
	if err != nil {
		return err
	}
	return say(out, "%s was done before by this action, and nothing is changed now; what stands:\n%s", what, list(pauses))
}

// do connects, and decides. who is who wants to know why.
func (c *orderCommand) do(ctx context.Context, who string,
	decide func(*operator.Operator, operator.Action, operator.Scope) error,
) error {
	scope, err := c.scope()
	if err != nil {
		return err
	}
	if strings.TrimSpace(c.reason) == "" {
		return usageError{"--reason is missing: " + who + " will want to know"}
	}
	action := operator.Action{ID: outbox.NewID(), Actor: c.root.actor(c.actor), Reason: c.reason}
	if c.action != "" {
		if action.ID, err = outbox.ParseID(c.action); err != nil {
			return usageError{fmt.Sprintf("--action: %.80q is no id", c.action)}
		}
	}
	return c.root.operate(ctx, func(op *operator.Operator) error {
		err := decide(op, action, scope)
		if state := sqlState(nil); errors.As(err, &state) {
			return fmt.Errorf("%w (action %s)", err, action.ID)
		}
		return err
	})
}

// operate connects to the database and does an operator's work.
func (c *rootCommand) operate(ctx context.Context, work func(*operator.Operator) error) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return c.hint(work(operator.New(conn, c.schema)), "operator")
}

// sqlState is an error of the database.
type sqlState interface{ SQLState() string }

// hint says what to do about the errors that a person meets. part is what the role should have been granted.
func (c *rootCommand) hint(err error, part string) error {
	var state sqlState
	if known := (problem{}); errors.As(err, &known) { // somebody who knew more has said it
		return err
	}
	if errors.Is(err, operator.ErrNotUnderstood) {
		return usageError{strings.TrimPrefix(err.Error(), "operator: ")}
	}
	if !errors.As(err, &state) {
		return err
	}
	switch state.SQLState() {
	case "22023", "23505", "23514":
		return inOurWords(err)
	case "3F000", "42883", "42P01", "42703":
		return problem{
			code: "no_outbox", exit: exitFailed, err: err,
			hint: "there is no outbox in schema " + c.schema + ", or an old one: run 'outboxctl migrate up" +
				c.sameOutbox() + "'",
		}
	case "42501":
		// The operator package names a grant as well, for programs that have no hints.
		if text, _, found := strings.Cut(err.Error(), "; run `outboxctl grant "); found {
			err = reworded{text, err}
		}
		return problem{
			code: "permission_denied", exit: exitNotLetIn, err: err,
			hint: "the role needs what 'outboxctl grant " + part + " ROLE' gives",
		}
	}
	return err
}

// inOurWords leaves out what PostgreSQL puts around the words of a function of ours. An error of a constraint has
// PostgreSQL's words, and keeps its code.
func inOurWords(err error) error {
	var found *pgconn.PgError
	if !errors.As(err, &found) || found.ConstraintName != "" {
		return err
	}
	return reworded{strings.Replace(err.Error(), found.Error(), found.Message, 1), err}
}

// reworded is an error in other words.
type reworded struct {
	text string
	err  error
}

func (r reworded) Error() string { return r.text }
func (r reworded) Unwrap() error { return r.err }

// standing is an error that says what is paused.
func (c *orderCommand) standing(ctx context.Context, op *operator.Operator, problem string) error {
	pauses, err := op.Pauses(ctx)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s\n%s", problem, strings.TrimSuffix(list(pauses), "\n"))
}

// newPauses lists what is paused.
func newPauses(root *rootCommand) *cobra.Command {
	return &cobra.Command{
		Use:     "pauses",
		Short:   "List what operators have paused: what, who, since when, and why",
		Example: "  outboxctl pauses\n  outboxctl pauses --schema billing",
		Args:    cobra.NoArgs,
		RunE: run(func(ctx context.Context, out io.Writer) error {
			return root.operate(ctx, func(op *operator.Operator) error {
				pauses, err := op.Pauses(ctx)
				if err != nil {
					return err
				}
				return say(out, "%s", list(pauses))
			})
		}),
	}
}

func list(pauses []operator.Pause) string {
	if len(pauses) == 0 {
		return "operators have paused nothing\n"
	}
	var lines strings.Builder
	for _, pause := range pauses {
		fmt.Fprintln(&lines, clean.Line(pause.String())) // whoever paused it chose the words
	}
	return lines.String()
}
