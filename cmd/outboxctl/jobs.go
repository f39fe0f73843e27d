package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newJobs is the group of the commands about jobs.
func newJobs(root *rootCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Look at jobs, pause, resume and cancel them",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("list, show, watch, work, pause, resume or cancel is missing")
		},
	}
	cmd.AddCommand(newJobsList(root), newJobShow(root, "jobs", "show"), newJobWatch(root, "watch", false),
		newJobWatch(root, "work", true), newJobChange(root, "jobs", "pause"), newJobChange(root, "jobs", "resume"),
		newJobChange(root, "jobs", "cancel"))
	return cmd
}

// mostJobs is how many jobs are listed at once.
const mostJobs = 1000

func newJobsList(root *rootCommand) *cobra.Command {
	var all bool
	var limit int
	cmd := root.show(&cobra.Command{
		Use:   "list",
		Short: "List the jobs that have not ended or ended lately, the newest first",
		Long: `List the jobs that have not ended, those that ended in the last day, and those that failed in the last week,
the newest first. A job is what was decided about all events of a filter: a redrive, discard or reissue of dead events,
a skip, a release, or a replay. A job that failed can be resumed. The viewer role is enough.`,
		Example: "  outboxctl jobs list\n  outboxctl jobs list --all -o json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) error {
		if limit < 1 || limit > mostJobs {
			return usageError{fmt.Sprintf("--limit %d: it must be from 1 to %d", limit, mostJobs)}
		}
		return root.look(ctx, func(op *operator.Operator) error {
			jobs, err := op.Jobs(ctx, all, nil, limit)
			if err != nil {
				return err
			}
			none := "no job is open, and none ended lately; --all lists older ones"
			if all {
				none = "there was no job yet"
			}
			return present.List(p, jobs, none, jobColumns(time.Now())...)
		})
	})
	cmd.Flags().BoolVar(&all, "all", false, "also older ones")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many, from 1 to 1000")
	return cmd
}

func jobColumns(now time.Time) []present.Column[operator.Job] {
	return []present.Column[operator.Job]{
		{Name: "STARTED", Of: func(j operator.Job) string { return ago(j.CreatedAt, now) }, Right: true},
		{Name: "VERB", Of: func(j operator.Job) string { return string(j.Verb) }},
		{Name: "STATE", Of: func(j operator.Job) string { return string(j.State) }, Style: jobStyle},
		{Name: "DONE", Of: func(j operator.Job) string { return grouped(j.Done) }, Right: true},
		{Name: "OF", Of: func(j operator.Job) string { return grouped(j.Expected) }, Right: true},
		{Name: "RATE", Of: func(j operator.Job) string {
			if j.Rate == 0 {
				return ""
			}
			return fmt.Sprintf("%g/s", j.Rate)
		}, Right: true, Optional: true},
		{Name: "BY", Of: func(j operator.Job) string { return cut(j.Actor, 20) }},
		{Name: "WORKER", Of: func(j operator.Job) string { return cut(j.Worker, 24) }, Optional: true},
		{Name: "JOB", Of: func(j operator.Job) string { return j.ID.String() }},
		{Name: "FILTER", Of: func(j operator.Job) string { return cut(j.Filter, 60) }, Optional: true},
		{Name: "REASON", Of: func(j operator.Job) string { return cut(j.Reason, 40) }, Optional: true},
	}
}

func jobStyle(j operator.Job) present.Style {
	switch j.State {
	case operator.JobFailed:
		return present.Bad
	case operator.JobDone, operator.JobCanceled:
		return present.Faint
	case operator.JobRunning, operator.JobPaused:
	}
	return present.Plain
}

// oneJob reads the id of a job, the only argument.
func oneJob(id *outbox.ID) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) (err error) {
		if len(args) != 1 {
			return errors.New("name one job by its id: 'outboxctl jobs list --all' has them")
		}
		if *id, err = outbox.ParseID(args[0]); err != nil {
			return fmt.Errorf("%.80q is no id of a job", args[0])
		}
		return nil
	}
}

// noJob says that there is none.
func noJob(err error, id outbox.ID) error {
	if errors.Is(err, operator.ErrNoJob) {
		return notFound("there is no job %s; 'outboxctl jobs list --all' has those that there are", id)
	}
	return err
}

// jobReport is a job, and why its copies may wait.
type jobReport struct {
	operator.Job

	Waits []string `json:"copiesWait,omitempty"`
}

// copiesReport is how the copies fare that an action asked for without a job.
type copiesReport struct {
	Action outbox.ID       `json:"action"`
	Copies operator.Copies `json:"copies"`
	Waits  []string        `json:"copiesWait,omitempty"`
}

// showCopies shows the copies that an action asked for by the ids of events.
func showCopies(ctx context.Context, p *present.Printer, op *operator.Operator, action outbox.ID) error {
	copies, err := op.Copies(ctx, action)
	if errors.Is(err, operator.ErrNoCopies) {
		return notFound("there is no job %s, and no action of this id that asked for copies", action)
	}
	if err != nil {
		return err
	}
	report := copiesReport{Action: action, Copies: copies}
	if copies.Open > 0 {
		if report.Waits, err = op.CopiesWait(ctx, action); err != nil {
			return err
		}
	}
	return p.One(report, func() []string {
		lines := []string{"action  " + action.String(), "copies  " + copiesText(copies)}
		for _, reason := range report.Waits {
			lines = append(lines, p.Paint(present.Plain, "waits   "+reason))
		}
		return lines
	})
}

func newJobShow(root *rootCommand, path, name string) *cobra.Command {
	var id outbox.ID
	long := "Show one job: what, who, why, and how far it is. The viewer role is enough."
	if path == "replay" {
		long = `Show a replay: what, who, why, how many copies were sent, failed, were canceled or are not sent yet, and
why those may wait. It also takes the id of an action that asked for copies by the ids of events. The viewer role is
enough.`
	}
	return root.show(&cobra.Command{
		Use:     name + " JOB",
		Short:   "Show one job: what, who, why, and how far it is",
		Long:    long,
		Example: "  outboxctl " + path + " " + name + " 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e",
		Args:    oneJob(&id),
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			job, err := op.Job(ctx, id)
			if path == "replay" && errors.Is(err, operator.ErrNoJob) {
				return showCopies(ctx, p, op, id)
			}
			if err != nil {
				return noJob(err, id)
			}
			report := jobReport{Job: job}
			if job.Copies.Open > 0 {
				if report.Waits, err = op.CopiesWait(ctx, job.ID); err != nil {
					return err
				}
			}
			return p.One(report, func() []string {
				lines := jobLines(job, report.Waits, time.Now())
				for i := range lines { // whoever started it chose the words
					lines[i] = p.Paint(present.Plain, lines[i])
				}
				return lines
			})
		})
	})
}

func newJobWatch(root *rootCommand, name string, here bool) *cobra.Command {
	var id outbox.ID
	short, long := "Show how far a job is until it ends",
		"Show how far a job is until it ends. The viewer role is enough. The job does not need anybody who watches it."
	if here {
		short, long = "Work on a job in this command",
			`Work on a job in this command until it ends, for instance where no outbox-publisher has the operator's grant.
Interrupted, it leaves the job as it is: whoever works on it next goes on.`
	}
	cmd := &cobra.Command{
		Use: name + " JOB", Short: short, Long: long, Args: oneJob(&id),
		Example: "  outboxctl jobs " + name + " 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e",
	}
	cmd.RunE = run(func(ctx context.Context, out io.Writer) error {
		return root.operate(ctx, func(op *operator.Operator) error {
			job, err := op.Job(ctx, id)
			if err != nil {
				return noJob(err, id)
			}
			return root.watchJob(ctx, out, op, job, here)
		})
	})
	return cmd
}

// newJobChange is a command that pauses, resumes or cancels a job.
func newJobChange(root *rootCommand, path, verb string) *cobra.Command {
	var id outbox.ID
	who := &decisionFlags{root: root}
	texts := map[string][3]string{
		"pause": {
			"Pause a job", "What is done stays; copies that are asked for already are sent.", "the consumer is not ready",
		},
		"resume": {"Resume a job that is paused or failed", "It goes on where it was.", "the consumer is ready now"},
		"cancel": {"End a job", `What is done stays. Of a replay, copies that are not sent yet are never sent: it waits for
those that a relay has in its hands, and when it ends with exit code 0, no copy is sent any more. Interrupted, it can be
called again. It also takes the id of an action that asked for copies without a job.`, "these are the wrong events"},
	}[verb]
	cmd := &cobra.Command{
		Use: verb + " JOB", Short: texts[0], Args: oneJob(&id),
		Long: texts[0] + ". " + texts[1] +
			"\n\nWho did it and why is written to outbox_actions. It needs the operator role.",
		Example: "  outboxctl " + path + " " + verb + " 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e " +
			`--reason "` + texts[2] + `"`,
	}
	who.add(cmd)
	cmd.RunE = run(func(ctx context.Context, out io.Writer) error {
		action, err := who.decision()
		if err != nil {
			return err
		}
		return root.operate(ctx, func(op *operator.Operator) error {
			return changeJob(ctx, out, root.notef, op, verb, action, id)
		})
	})
	return cmd
}

func changeJob(ctx context.Context, out io.Writer, note func(string, ...any), op *operator.Operator, verb string,
	action operator.Action, id outbox.ID,
) error {
	if verb == "cancel" {
		return cancelJob(ctx, out, note, op, action, id)
	}
	do := map[string]func(context.Context, operator.Action, outbox.ID) (operator.Outcome, error){
		"pause": op.PauseJob, "resume": op.ResumeJob,
	}[verb]
	outcome, err := do(ctx, action, id)
	if err != nil {
		return ofAction(err, action.ID)
	}
	job, err := op.Job(ctx, id)
	if err != nil {
		return noJob(err, id)
	}
	if outcome == operator.NotApplicable {
		return noChange(verb, job)
	}
	return say(out, "%s: job %s is %s, %s; action %s%s\n", verb, id, job.State, jobCounts(job), action.ID,
		doneBefore(outcome))
}

// noChange says why a verb has changed nothing of a job.
func noChange(verb string, job operator.Job) error {
	already := ""
	if job.State == map[string]operator.JobState{
		"pause": operator.JobPaused, "resume": operator.JobRunning, "cancel": operator.JobCanceled,
	}[verb] {
		already = " already"
	}
	return fmt.Errorf("%s: job %s is %s%s", verb, job.ID, job.State, already)
}

// doneBefore tells of an action that was sent again.
func doneBefore(outcome operator.Outcome) string {
	if outcome == operator.DoneBefore {
		return " (done before)"
	}
	return ""
}

func copiesOf(n int64) string {
	if n == 1 {
		return "1 copy"
	}
	return grouped(n) + " copies"
}

// jobLines shows a job to a person.
func jobLines(job operator.Job, waits []string, now time.Time) (lines []string) {
	line := func(name, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("%-7s %s", name, text))
		}
	}
	line("job", job.ID.String())
	line("verb", string(job.Verb))
	line("filter", job.Filter)
	line("topic", job.Topic)
	state := string(job.State)
	if job.Worker != "" {
		state += ", " + job.Worker + " works on it"
	} else if job.State == operator.JobRunning {
		state += ", but nobody works on it"
	}
	line("state", state)
	line("error", job.Error)
	progress := "done"
	if job.Verb == operator.VerbRedeliver {
		progress = "asked"
	}
	line(progress, fmt.Sprintf("%s of %s", grouped(job.Done), events(job.Expected))+passedText(job))
	line("copies", copiesText(job.Copies))
	for _, reason := range waits {
		line("waits", reason)
	}
	limits := []string{"at most " + grouped(job.Max) + " events"}
	if job.Rate > 0 {
		limits = append(limits, fmt.Sprintf("%g per second", job.Rate))
	}
	line("limits", strings.Join(limits, ", "))
	line("by", fmt.Sprintf("%s (%s), %s", job.Actor, job.SessionRole, ago(job.CreatedAt, now)))
	line("reason", job.Reason)
	if job.EndedAt != nil {
		line("ended", agoOf(job.EndedAt, now))
	}
	return lines
}
