package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// eventsErase erases payloads.
type eventsErase struct {
	decisionFlags

	args []string
	yes  bool
	most int
}

// eraseReport is what an erasure came to, or would.
type eraseReport struct {
	operator.ErasurePlan

	DryRun bool   `json:"dryRun"`
	Events int    `json:"events"` // that were erased, or would be
	Action string `json:"action,omitempty"`
}

func newEventsErase(root *rootCommand) *cobra.Command {
	c := &eventsErase{decisionFlags: decisionFlags{root: root}}
	cmd := root.show(&cobra.Command{
		Use:   "erase EVENT_ID... | FILTER...",
		Short: "Erase payload and headers of finished events",
		Long: `Erase payload and headers of published, discarded and dead events, and of their dead letters: a hash of what
was there stands in their place. Without --yes it counts what would go, and changes nothing.

A filter means all events that are there, however old, and dead letters of events that retention has deleted. Of these
nothing is known of state, error, published and attempts: with such a field they are not looked at, which is said.

What may still be published is kept, and so is an event of which a copy is still to be sent. An erased event is never
redriven or delivered again. Its id, type, aggregate, tenant and dedupe key stay; so do the copies that a broker, a
consumer or a backup has.

One action erases at most 10,000 events. --max raises that, and must then be the very count that the dry run says would
be erased; what is kept does not count. Cut off, the same command with --action and the id that it says goes on. Who did
it and why is written to outbox_actions in the same transaction. Counting needs the viewer role, erasing operator.

` + filterHelp,
		Example: `  outboxctl events erase 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e
  outboxctl events erase aggregate:customer/4711
  outboxctl events erase aggregate:customer/4711 --yes --reason "the customer asked for it"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("erase takes ids of events, or a filter")
			}
			for _, arg := range args {
				if strings.TrimSpace(arg) == "" { // of a variable that is not set, and not all events
					return errors.New("an argument is empty")
				}
			}
			c.args = args
			return nil
		},
	}, c.run)
	cmd.Flags().BoolVar(&c.yes, "yes", false, "erase, instead of counting only")
	cmd.Flags().IntVar(&c.most, "max", operator.MaxEvents, "the most events; above 10000 the count of the dry run")
	cmd.Flags().StringVar(&c.decisionFlags.actor, "actor", "", actorHelp)
	cmd.Flags().StringVar(&c.reason, "reason", "", "why; needed with --yes")
	cmd.Flags().StringVar(&c.action, "action", "", "the id of an action that goes on, because it was cut off")
	return cmd
}

func (c *eventsErase) run(ctx context.Context, p *present.Printer) error {
	filter, byID, err := c.filter()
	if err != nil {
		return err
	}
	if c.most < 1 {
		return usageError{"--max must be at least 1"}
	}
	if !c.yes {
		return c.root.look(ctx, func(op *operator.Operator) error {
			report, err := c.plan(ctx, op, filter)
			if err != nil {
				return err
			}
			report.DryRun = true
			return p.One(report, report.lines)
		})
	}
	action, err := c.decision()
	if err != nil {
		return err
	}
	return c.root.operate(ctx, func(op *operator.Operator) error {
		report, err := c.plan(ctx, op, filter)
		if err != nil {
			return err
		}
		begun, err := op.ErasedBy(ctx, action.ID)
		if err != nil {
			return err
		}
		if err := c.confirmed(report, len(begun)); err != nil {
			return err
		}
		if report.Events, err = c.erase(ctx, op, action, report.ErasurePlan.Events); err != nil {
			return c.cutOff(err, report.Events, action.ID)
		}
		if report.Events > 0 { // the log has no action that changed nothing
			report.Action = action.ID.String()
		}
		if err := p.One(report, report.lines); err != nil {
			return err
		}
		return report.missed(byID)
	})
}

// filter is what the arguments mean. Ids alone may be as many as an action takes.
func (c *eventsErase) filter() (filter operator.Filter, byID bool, err error) {
	for _, arg := range c.args {
		id, err := outbox.ParseID(arg)
		if err != nil {
			filter, err = filterOf(c.args)
			return filter, false, err
		}
		filter.IDs = append(filter.IDs, id)
	}
	return filter, true, nil
}

// plan counts.
func (c *eventsErase) plan(ctx context.Context, op *operator.Operator, filter operator.Filter) (eraseReport, error) {
	plan, err := op.PlanErasure(ctx, filter, c.most)
	if tooMany := (*operator.TooManyError)(nil); errors.As(err, &tooMany) {
		return eraseReport{}, problem{
			code: "too_many", exit: exitFailed, err: tooMany,
			hint: "ask for fewer, or raise --max: a dry run with it counts them",
		}
	}
	return eraseReport{Events: len(plan.Events), ErasurePlan: plan}, c.root.looked(err)
}

// confirmed wants a large count typed: of what the action would erase, or would and has, where it was cut off.
func (c *eventsErase) confirmed(report eraseReport, begun int) error {
	if report.Events > operator.MaxEvents && c.most != report.Events && c.most != report.Events+begun {
		return problem{
			code: "not_confirmed", exit: exitFailed, err: fmt.Errorf("%d events would be erased", report.Events),
			hint: fmt.Sprintf("if all of them are meant, say so: --max %d", report.Events),
		}
	}
	return nil
}

// cutOff says how an erasure goes on that has ended early: with its id, unless the same command fails again.
func (c *eventsErase) cutOff(err error, done int, action outbox.ID) error {
	var state sqlState
	if usedBefore(err) || done == 0 && errors.As(err, &state) && state.SQLState() == "42501" {
		return err
	}
	return fmt.Errorf("%w (%s erased; the same command with --action %s goes on)", err, plural(done, "event is",
		"events are"), action)
}

// eraseBatch is how many events a transaction erases: other actions wait for it.
const eraseBatch = 1_000

// erase does it in parts, and says how far it is.
func (c *eventsErase) erase(ctx context.Context, op *operator.Operator, action operator.Action, events []outbox.ID) (
	done int, err error,
) {
	begun, told, tried := time.Now(), time.Now(), 0
	for part := range slices.Chunk(events, eraseBatch) {
		results, err := op.Erase(ctx, action, part...)
		if err != nil {
			return done, err
		}
		for _, result := range results {
			if result.Outcome == operator.Done || result.Outcome == operator.DoneBefore {
				done++
			}
		}
		if tried += len(part); time.Since(told) > time.Second && tried < len(events) {
			told = time.Now()
			c.root.notef("%s", progress(tried, len(events), time.Since(begun)))
		}
	}
	return done, nil
}

// progress says how far something is, with its rate and the time that is left.
func progress(done, of int, took time.Duration) string {
	rate := float64(done) / max(took.Seconds(), 0.001)
	left := time.Duration(float64(of-done) / max(rate, 0.001) * float64(time.Second))
	return fmt.Sprintf("%d of %d, %.0f/s, %s left", done, of, rate, left.Round(time.Second))
}

// lines are what people see of it.
func (r eraseReport) lines() []string {
	did, planned := "erased", len(r.ErasurePlan.Events)
	if r.DryRun {
		did = "would erase"
	}
	lines := []string{did + " " + plural(r.Events, "event", "events") + counted(r.Erased)}
	if r.Events < planned {
		lines[0] = fmt.Sprintf("erased %d of %s: the others changed meanwhile", r.Events,
			plural(planned, "event", "events"))
	}
	if len(r.Kept) > 0 {
		lines = append(lines, fmt.Sprintf("kept %d", total(r.Kept))+counted(r.Kept))
	}
	if len(r.Unasked) > 0 {
		lines = append(lines, "dead letters of events that retention has deleted were not looked at: they have no "+
			strings.Join(r.Unasked, ", "))
	}
	switch {
	case r.DryRun && r.Events > 0:
		lines = append(lines, `nothing is changed: do it with --yes --reason "..."`)
	case r.Action != "":
		lines = append(lines, "action "+r.Action)
	}
	return lines
}

// missed fails where an event that was named, or that was there to be erased, is not.
func (r eraseReport) missed(byID bool) error {
	left := len(r.ErasurePlan.Events) - r.Events
	if byID {
		left += total(r.Kept) - r.Kept["erased before"]
	}
	if of := total(r.Kept); byID && len(r.ErasurePlan.Events) == 0 && of > 0 && r.Kept["not found"] == of {
		return notFound("erase: %s", noneThere(of))
	}
	if left > 0 {
		return fmt.Errorf("erase: %s in no state for it, or not there", plural(left, "event is", "events are"))
	}
	return nil
}

func total(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// counted is ": 3 published, 1 dead", the most first.
func counted(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	if parts == nil {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}
