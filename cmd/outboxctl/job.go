package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// job is what a command has that can act on all events of a filter.
type job struct {
	verb   operator.Verb
	spec   operator.JobSpec
	dryRun bool
	yes    bool
	here   bool
	detach bool
	flags  *pflag.FlagSet // what somebody has named; nil where there is nothing to name
}

// maxNamed tells whether somebody has named the bound.
func (j *job) maxNamed() bool { return j.flags != nil && j.flags.Changed("max") }

// onlyOfJobs says which flags were named that mean nothing for events that are named by their ids: those of all verbs,
// and others.
func (j *job) onlyOfJobs(others ...string) error {
	for _, name := range append([]string{"dry-run", "here", "detach", "output", "after-seq"}, others...) {
		if j.flags.Changed(name) {
			return usageError{"--" + name + " is for a filter: events that are named by their ids are no job" +
				map[bool]string{true: "; 'outboxctl events explain' says how they stand"}[name == "dry-run"]}
		}
	}
	return nil
}

// usualRate is how many events per second a job changes unless somebody says more: consumers that come back are not
// run over.
const usualRate = 500

const jobHelp = `
With a filter (see 'outboxctl events list --help') it is a job. It is counted first, and --dry-run is that alone. More
than 10,000 events need --max with their number or more, or it is typed when the terminal asks. An outbox-publisher
whose role has the operator's grant works on it (or 'outboxctl dev'), in the order of the events; this command shows how
far it is, and may go away meanwhile. --here works on it in this command. 'outboxctl jobs' lists, pauses and cancels
them.`

func (j *job) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	j.flags = flags
	flags.Float64Var(&j.spec.Rate, "rate", usualRate, "of a job: so many events per second; 0: as fast as it goes")
	flags.Int64Var(&j.spec.Max, "max", operator.DefaultMaxEvents,
		"of a job: the most events; beyond 10000 as many as there are, or more")
	flags.Int64Var(&j.spec.AfterSeq, "after-seq", 0,
		"of a job: only events above this number, at which one stopped that reached its --max")
	flags.BoolVar(&j.dryRun, "dry-run", false, "of a job: count, show some, and change nothing")
	flags.BoolVarP(&j.yes, "yes", "y", false, "of a job: start it without asking")
	flags.BoolVar(&j.here, "here", false,
		"of a job: work on it in this command, for instance where no outbox-publisher runs")
	flags.BoolVar(&j.detach, "detach", false, "of a job: start it and do not wait")
}

// longestPlan is for how long events are counted.
const longestPlan = 30 * time.Second

// check says what of the flags cannot be.
func (j *job) check(root *rootCommand) error {
	switch {
	case j.here && j.detach:
		return usageError{"--here works on the job in this command, and --detach does not wait for it: use one of them"}
	case root.output != present.Table && !j.dryRun:
		return usageError{"--output is for --dry-run: 'outboxctl jobs show JOB -o json' is for a job that was started"}
	}
	return nil
}

// start plans the job, asks, starts it, and watches it.
func (j *job) start(ctx context.Context, in io.Reader, out io.Writer, who *decisionFlags) error {
	root := who.root
	j.spec.Verb = j.verb
	action, err := who.decision()
	if j.dryRun {
		_, err = who.id() // nothing is decided yet: no reason is needed
	}
	if err = errors.Join(err, j.check(root)); err != nil {
		return err
	}
	return root.operate(ctx, func(op *operator.Operator) error {
		if before, err := op.Job(ctx, action.ID); err == nil && !j.dryRun { // its answer was lost
			if !j.maxNamed() { // it may have been typed
				j.spec.Max = before.Max
			}
			if before, err = op.StartJob(ctx, action, j.spec, before.Expected); err != nil {
				return root.looked(err)
			}
			root.notef("this action was done before: its job is %s", before.State)
			return j.follow(ctx, root, out, op, before)
		}
		plan, err := op.PlanJob(ctx, j.spec, longestPlan)
		if err != nil {
			return root.looked(err)
		}
		if err := j.showPlan(root, out, plan); err != nil || j.dryRun || nothingMeant(plan) {
			return err
		}
		if err := j.confirm(ctx, in, root.notef, plan); err != nil {
			return err
		}
		plan.Spec.Max = j.spec.Max
		begun, err := op.StartJob(ctx, action, plan.Spec, plan.Events)
		if err != nil {
			return ofAction(err, action.ID)
		}
		return j.follow(ctx, root, out, op, begun)
	})
}

// nothingMeant tells whether there is nothing to do. A plan that took too long has not looked at all.
func nothingMeant(plan operator.JobPlan) bool { return plan.Events == 0 && plan.Complete }

// confirm has a person agree: by a word, and for more than 10,000 events by their number.
func (j *job) confirm(ctx context.Context, in io.Reader, note func(string, ...any), plan operator.JobPlan) error {
	if !plan.Complete {
		return usageError{"nothing was changed: there are more events than could be counted: narrow the filter, for " +
			"instance by created:, or look at those above a number with --after-seq"}
	}
	if err := j.withinMax(plan); err != nil {
		return err
	}
	many := plan.Events > operator.DefaultMaxEvents
	terminal, ok := in.(*os.File)
	mayAsk := ok && term.IsTerminal(int(terminal.Fd()))
	switch {
	case many && j.spec.Max >= plan.Events:
		return nil
	case many && !mayAsk:
		return confirmByMax(plan.Events)
	case !many && j.yes:
		return nil
	case !mayAsk:
		return usageError{"nothing was changed: --yes starts it"}
	case many:
		note("Type their number to go on:")
	default:
		note("Go on? [y/N]")
	}
	answer, err := readLine(ctx, in)
	if err != nil {
		return err
	}
	answer = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(answer), ",", ""))
	if many && answer == strconv.FormatInt(plan.Events, 10) {
		j.spec.Max = plan.Events
		return nil
	}
	if !many && (answer == "y" || answer == "yes") {
		return nil
	}
	return errors.New("nothing was changed")
}

// withinMax tells whether the bound that was named allows the plan.
func (j *job) withinMax(plan operator.JobPlan) error {
	many := plan.Events > operator.DefaultMaxEvents
	switch {
	case many && j.maxNamed() && j.spec.Max < plan.Events:
		return confirmByMax(plan.Events)
	case !many && j.maxNamed() && plan.Events > j.spec.Max:
		return usageError{fmt.Sprintf("%s, which is more than --max %d: if all of them are meant, say --max %d",
			events(plan.Events), j.spec.Max, plan.Events)}
	}
	return nil
}

func confirmByMax(number int64) error {
	return usageError{fmt.Sprintf("%d events meet this: confirm their number with --max %[1]d, or more while there come "+
		"more", number)}
}

// readLine reads what a person types, unless they end the command instead.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		typed <- line
	}()
	select {
	case line := <-typed:
		return line, nil
	case <-ctx.Done():
		return "", fmt.Errorf("nothing was changed: %w", context.Cause(ctx))
	}
}
