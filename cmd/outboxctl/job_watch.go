package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// follow shows how a job goes until it ends, unless nobody wants to know.
func (j *job) follow(ctx context.Context, root *rootCommand, out io.Writer, op *operator.Operator,
	begun operator.Job,
) error {
	if err := say(out, "job %s\n", begun.ID); err != nil {
		return err
	}
	if j.detach && !j.here {
		return nil
	}
	return root.watchJob(ctx, out, op, begun, j.here)
}

// watchJob works on a job, or looks at it, until it has ended or is paused.
func (c *rootCommand) watchJob(ctx context.Context, out io.Writer, op *operator.Operator, job operator.Job,
	here bool,
) error {
	meter := newJobMeter(c, job, time.Now())
	meter.explains(ctx, op)
	id := job.ID // of a job that cannot be read any more nothing else is left
	var err error
	if here {
		job, err = op.NewWorker("outboxctl of "+c.actor(""), nil).Do(ctx, job.ID, meter.show)
	} else {
		job, err = meter.until(ctx, job)
	}
	meter.end()
	if err != nil {
		if !job.Ended() {
			c.noteOfOpenJob(id, here)
		}
		return err
	}
	if err := say(out, "%s: %s, %s\n", job.Verb, job.State, jobCounts(job)); err != nil {
		return err
	}
	switch job.State {
	case operator.JobFailed:
		return fmt.Errorf("job %s has failed: %s", job.ID, job.Error)
	case operator.JobCanceled, operator.JobPaused:
		return fmt.Errorf("job %s is %s", job.ID, job.State)
	case operator.JobRunning, operator.JobDone:
	}
	return nil
}

// noteOfOpenJob says what becomes of a job that this command leaves.
func (c *rootCommand) noteOfOpenJob(id outbox.ID, here bool) {
	goesOn := ""
	if here {
		goesOn = fmt.Sprintf("'outboxctl jobs work %s%s' goes on, ", id, c.sameOutbox())
	}
	c.notef("the job goes on where an outbox-publisher works on it: %s'outboxctl jobs watch %s%s' shows it, "+
		"'outboxctl jobs cancel %s%s' ends it", goesOn, id, c.sameOutbox(), id, c.sameOutbox())
}

// jobCounts is what came of a job.
func jobCounts(job operator.Job) string {
	text := events(job.Done)
	if copies := copiesText(job.Copies); copies != "" {
		text += ", copies: " + copies
	}
	return text + passedText(job)
}

func passedText(job operator.Job) string {
	if job.Passed == 0 {
		return ""
	}
	return fmt.Sprintf(", %s passed by: erased, or in no state for it any more", grouped(job.Passed))
}

// copiesText is how the copies of a redelivery fare.
func copiesText(copies operator.Copies) string {
	var parts []string
	for _, part := range []struct {
		number int64
		what   string
	}{
		{copies.Sent, " sent"},
		{copies.Failed, " failed"},
		{copies.Canceled, " canceled"},
		{copies.Open, " not sent yet"},
	} {
		if part.number > 0 {
			parts = append(parts, grouped(part.number)+part.what)
		}
	}
	text := strings.Join(parts, ", ")
	if copies.AtLeast {
		text = "at least " + text
	}
	return text
}

// jobMeter shows how far a job is: on a terminal in a line that changes, elsewhere in lines.
type jobMeter struct {
	root        *rootCommand
	began, said time.Time
	looked      time.Time
	first       int64 // how far it was at the beginning
	written     bool  // a line that is not ended
	idle, waits bool  // whether it was said that nobody works on it, and why copies wait
	asked       time.Time

	// why tells why copies wait. moved is when something was last done, at how far that was, and worked when that was or
	// somebody had the job.
	why           func(operator.Job) []string
	at            int64
	moved, worked time.Time
}

func newJobMeter(root *rootCommand, job operator.Job, now time.Time) *jobMeter {
	return &jobMeter{root: root, began: now, moved: now, worked: now, first: progressOf(job)}
}

// explains has the meter ask this operator why copies wait.
func (m *jobMeter) explains(ctx context.Context, op *operator.Operator) {
	m.why = func(job operator.Job) []string {
		reasons, _ := op.CopiesWait(ctx, job.ID) // without them the numbers are told all the same
		return reasons
	}
}

// progressOf is with how many events the job is done: of a redelivery those whose copies are sent or never will be.
func progressOf(job operator.Job) int64 { return job.Done + job.Passed - job.Copies.Open }

// How often it looks, and how often it says something where that stays.
const (
	lookAtJob   = 500 * time.Millisecond
	sayOfJob    = 10 * time.Second
	nobodyTakes = 10 * time.Second
	lookWhy     = 10 * time.Second
)

// until looks at a job until it has ended or is paused. A connection that is lost is made anew: that may take hours.
func (m *jobMeter) until(ctx context.Context, job operator.Job) (operator.Job, error) {
	err := m.root.watch(ctx, lookAtJob, func(op *operator.Operator) (last bool, err error) {
		now, err := op.Job(ctx, job.ID)
		if err != nil {
			return false, err
		}
		job = now
		m.explains(ctx, op)
		m.show(job)
		m.sayIdle(job, time.Now())
		return job.State != operator.JobRunning, nil
	})
	if err == nil && job.State == operator.JobRunning {
		err = ctx.Err() // for watch that is a good end
	}
	return job, err
}

// sayIdle says once that nobody works on the job.
func (m *jobMeter) sayIdle(job operator.Job, now time.Time) {
	if job.State != operator.JobRunning || job.Worker != "" || m.idle || now.Sub(m.worked) <= nobodyTakes {
		return
	}
	m.idle = true
	m.end()
	m.root.notef("nobody works on it: start an outbox-publisher whose role has the operator's grant ('outboxctl grant "+
		"operator ROLE%s'; one that runs takes it within a minute), or run 'outboxctl jobs work %s%[1]s'",
		m.root.sameOutbox(), job.ID)
}

// note looks how far the job is. Time in which nobody works on it does not count for the rate.
func (m *jobMeter) note(job operator.Job, now time.Time) {
	at := progressOf(job)
	if !m.looked.IsZero() && job.Worker == "" && at == m.at {
		m.began = m.began.Add(now.Sub(m.looked))
	}
	m.looked = now
	if job.Worker != "" || at != m.at {
		m.worked = now
	}
	if at != m.at {
		m.at, m.moved = at, now
	}
	if job.Copies.Open == 0 || m.waits || now.Sub(m.moved) < nobodyTakes || now.Sub(m.asked) < lookWhy {
		return
	}
	m.asked = now
	if reasons := m.why(job); len(reasons) > 0 {
		m.waits = true
		m.end()
		m.root.notef("copies wait: %s", strings.Join(reasons, "; "))
	}
}

func (m *jobMeter) show(job operator.Job) {
	m.note(job, time.Now())
	changes := m.root.colors(m.root.stderr)
	if !changes && time.Since(m.said) < sayOfJob {
		return
	}
	m.said = time.Now()
	text := fmt.Sprintf("%s of %s", grouped(m.at), grouped(job.Expected)) + m.pace(job, time.Now())
	if copies := copiesText(job.Copies); copies != "" {
		text += ", copies: " + copies
	}
	if !changes {
		m.root.notef("%s", text)
		return
	}
	_, _ = fmt.Fprintf(m.root.stderr, "\r%s\x1b[K", text)
	m.written = true
}

// pace is how fast it goes, and how long that takes: nothing where that is no event per second, since then what time
// is left would be made up.
func (m *jobMeter) pace(job operator.Job, now time.Time) (text string) {
	elapsed := now.Sub(m.began).Seconds()
	rate := float64(m.at-m.first) / elapsed
	if elapsed <= 1 || rate < 0.5 {
		return ""
	}
	text = fmt.Sprintf(", %.0f/s", rate)
	if left := job.Expected - m.at; left > 0 {
		text += ", " + short(time.Duration(float64(left)/rate*float64(time.Second))) + " left"
	}
	return text
}

// end ends the line.
func (m *jobMeter) end() {
	if m.written {
		_, _ = fmt.Fprintln(m.root.stderr)
		m.written = false
	}
}
