package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

var jobVerbs = []operator.Verb{
	operator.VerbRedrive, operator.VerbReissue, operator.VerbSkip, operator.VerbDiscard, operator.VerbRelease,
	operator.VerbRedeliver,
}

// jobsPage is what the screen of jobs has.
type jobsPage struct {
	Jobs []operator.Job
	All  bool
	Next string
	May  bool
	// Idle tells that nobody works on one of them.
	Idle bool
}

const jobsOfAPage = 100

func (q *request) jobs() error {
	p := &jobsPage{All: q.text("all") != "", May: q.user.Can(operatorRole)}
	var after *operator.Job
	if text := q.text("after"); text != "" {
		id, err := outbox.ParseID(text)
		if err != nil {
			return invalid("after must be the id of a job.")
		}
		job, err := q.jobOf(id)
		if err != nil {
			return err
		}
		after = &job
	}
	// Of all tenants' jobs a user may be shown few: the next ones are looked at until there is one more than a page has.
	const look = jobsOfAPage + 1
	for more := true; more && len(p.Jobs) < look; {
		jobs, err := q.outbox.op.Jobs(q.Context(), p.All, after, look)
		if err != nil {
			return err
		}
		if more = len(jobs) == look; more {
			after = &jobs[look-1]
		}
		p.Jobs = append(p.Jobs, slices.DeleteFunc(jobs, func(job operator.Job) bool { return !q.ownsJob(job) })...)
	}
	if len(p.Jobs) > jobsOfAPage {
		p.Jobs = p.Jobs[:jobsOfAPage]
		p.Next = p.Jobs[jobsOfAPage-1].ID.String()
	}
	p.Idle = slices.ContainsFunc(p.Jobs, func(job operator.Job) bool {
		return job.State == operator.JobRunning && job.Worker == ""
	})
	return q.ok("jobs", "Replay and jobs", 3, p)
}

// ownsJob tells whether a job is about the user's tenants alone.
func (q *request) ownsJob(job operator.Job) bool {
	if len(q.user.Tenants) == 0 {
		return true
	}
	filter, err := operator.ParsePlanned(job.Filter)
	return err == nil && filter.Tenant != "" && q.owns(filter.Tenant)
}

// jobPage is what the page of one job has.
type jobPage struct {
	operator.Job
	Share    int
	PerSec   float64
	Left     string
	Waits    []string
	May      bool
	Controls []string
	Notice   string
	Warned   bool // by the notice
}

func (q *request) oneJob() (operator.Job, error) {
	id, err := q.id()
	if err != nil {
		return operator.Job{}, err
	}
	return q.jobOf(id)
}

// jobOf reads a job. Another tenant's is not there.
func (q *request) jobOf(id outbox.ID) (operator.Job, error) {
	job, err := q.outbox.op.Job(q.Context(), id)
	if err == nil && !q.ownsJob(job) {
		err = operator.ErrNoJob
	}
	return job, err
}

func (q *request) job() error {
	job, err := q.oneJob()
	if err != nil {
		return err
	}
	p, err := q.jobPage(job)
	if err != nil {
		return err
	}
	refresh := 2
	if job.Ended() && job.Copies.Open == 0 {
		refresh = 0
	}
	return q.ok("job", "Job: "+string(job.Verb), refresh, p)
}

func (q *request) jobPage(job operator.Job) (*jobPage, error) {
	p := &jobPage{
		Job: job, May: q.user.Can(operatorRole), Notice: notices[q.text("notice")],
		Warned: q.text("notice") == noticePartly,
	}
	did := job.Done + job.Passed
	if job.Expected > 0 {
		p.Share = int(min(100, 100*did/job.Expected))
	}
	if job.State == operator.JobDone {
		p.Share = 100
	}
	if took := job.ChangedAt.Sub(job.CreatedAt).Seconds(); took > 0 {
		p.PerSec = float64(did) / took
	}
	if left := job.Expected - did; p.PerSec > 0 && left > 0 && job.State == operator.JobRunning {
		p.Left = span.Of(time.Duration(float64(left) / p.PerSec * float64(time.Second)))
	}
	switch job.State {
	case operator.JobRunning:
		p.Controls = []string{verbPause, verbCancel}
	case operator.JobPaused:
		p.Controls = []string{verbResume, verbCancel}
	case operator.JobFailed:
		p.Controls = []string{verbResume}
	case operator.JobDone, operator.JobCanceled:
	}
	if job.Copies.Open > 0 {
		if !slices.Contains(p.Controls, verbCancel) {
			p.Controls = append(p.Controls, verbCancel)
		}
		var err error
		if p.Waits, err = q.outbox.op.CopiesWait(q.Context(), job.ID); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// notices are what a page may say about what was done before. Nothing else from an address is shown as such.
var notices = map[string]string{
	"started": "The job is started. You may leave: it goes on.",
	verbPause: "The job is paused.", verbResume: "The job goes on.",
	verbCancel: "The job is canceled. What it has done stays.",
	noticePartly: "The job is canceled, but relays have some of its copies in their hands. They send them, or give " +
		"them back: cancel again to be sure.",
	"same": "Nothing changed: it was so already.",
}

// steer pauses, resumes or cancels a job.
func (q *request) steer() error {
	job, err := q.oneJob()
	if err != nil {
		return err
	}
	action, err := q.action()
	if err != nil {
		return err
	}
	notice := q.entry.Verb
	var outcome operator.Outcome
	var left bool
	switch notice {
	case verbPause:
		outcome, err = q.outbox.op.PauseJob(q.Context(), action, job.ID)
	case verbResume:
		outcome, err = q.outbox.op.ResumeJob(q.Context(), action, job.ID)
	case verbCancel:
		outcome, left, err = q.cancel(action, job)
	}
	if err != nil {
		return err
	}
	if left {
		notice = noticePartly
	} else if outcome == operator.NotApplicable {
		notice = "same"
	}
	http.Redirect(q.w, q.Request, q.path("jobs/"+job.ID.String(), "notice", notice), http.StatusSeeOther)
	return nil
}

// noticePartly is of a cancel after which copies may still be sent.
const noticePartly = "partly"

// For how long a cancel waits for copies that relays have in their hands, and how often it looks.
const (
	longestCancel = 5 * time.Second
	lookAgain     = 200 * time.Millisecond
)

// cancel ends a job and the copies that it has asked for and that are not sent yet. left: some may still be sent.
func (q *request) cancel(action operator.Action, job operator.Job) (outcome operator.Outcome, left bool, err error) {
	outcome = operator.NotApplicable
	if !job.Ended() {
		if outcome, err = q.outbox.op.CancelJob(q.Context(), action, job.ID); err != nil {
			return outcome, false, err
		}
	}
	if job.Verb != operator.VerbRedeliver {
		return outcome, false, nil
	}
	for begun := time.Now(); ; {
		canceled, open, err := q.outbox.op.Cancel(q.Context(), action.OfCopies(), job.ID)
		if canceled > 0 {
			outcome = operator.Done
		}
		switch {
		case err != nil || open == 0:
			return outcome, false, err
		case canceled > 0: // there are more than one call takes
			continue
		case time.Since(begun) > longestCancel:
			return outcome, true, nil
		}
		// A relay has them in its hands: it sends them or gives them back, mostly at once.
		select {
		case <-time.After(lookAgain):
		case <-q.Context().Done():
			return outcome, true, q.Context().Err()
		}
	}
}

// planPage is what the screen has on which a job is planned.
type planPage struct {
	Verbs             []operator.Verb
	Verb              operator.Verb
	Filter, Topic     string
	Rate, Max, Action string
	Plan              *operator.JobPlan
	Types             []countOf
	Typed             bool // the count must be typed
	Count             int64
	Took              string
	Why               string
	Says              string
}

type countOf struct {
	Name  string
	Count int64
}

// longestPlan is for how long a plan counts; then it is an estimate.
const longestPlan = 4 * time.Second

// plan counts what a job would change. It changes nothing.
func (q *request) plan() error {
	p := q.emptyPlan()
	if q.text("verb") == "" {
		return q.ok("plan", "Plan a job", 0, p)
	}
	spec, err := q.spec()
	if err != nil {
		return err
	}
	plan, err := q.outbox.op.PlanJob(q.Context(), spec, longestPlan)
	if err != nil {
		return err
	}
	p.Plan, p.Says = &plan, says(spec.Verb)
	p.Count = expected(plan)
	p.Typed = p.Count > operator.DefaultMaxEvents
	for name, count := range plan.Types {
		p.Types = append(p.Types, countOf{name, count})
	}
	slices.SortFunc(p.Types, func(a, b countOf) int { return int(b.Count - a.Count) })
	if spec.Rate > 0 {
		p.Took = span.Of(time.Duration(float64(p.Count) / spec.Rate * float64(time.Second)))
	}
	return q.ok("plan", "Plan a job", 0, p)
}

func (q *request) emptyPlan() *planPage {
	p := &planPage{
		Verbs: jobVerbs, Verb: operator.Verb(q.text("verb")), Filter: q.text("q"), Topic: q.text("topic"),
		Rate: q.text("rate"), Max: q.text("max"), Action: outbox.NewID().String(),
	}
	if p.Verb == "" {
		p.Verb = operator.VerbRedeliver
	}
	return p
}

// expected is how many events a plan is about, as far as is known.
func expected(plan operator.JobPlan) int64 {
	if plan.Complete {
		return plan.Events
	}
	return max(plan.Events, plan.Estimate)
}

func says(what operator.Verb) string {
	for _, v := range verbs {
		if v.Name == string(what) {
			return v.Says
		}
	}
	return ""
}

// spec reads what a job shall do.
func (q *request) spec() (spec operator.JobSpec, err error) {
	spec.Verb = operator.Verb(q.text("verb"))
	if !slices.Contains(jobVerbs, spec.Verb) {
		return spec, invalid("There is no such verb: it must be redrive, reissue, skip, discard, release or redeliver.")
	}
	if spec.Filter, err = q.filter(q.text("q")); err != nil {
		return spec, err
	}
	if spec.Topic = q.text("topic"); spec.Topic != "" && spec.Verb != operator.VerbRedeliver {
		return spec, invalid("Only a redelivery may go to another topic.")
	}
	if text := q.text("rate"); text != "" {
		spec.Rate, err = strconv.ParseFloat(text, 64)
		if err != nil || !(spec.Rate >= operator.MinRate && spec.Rate <= operator.MaxRate) {
			return spec, invalid("The rate must be a number of events per second, from %g to %d.",
				operator.MinRate, operator.MaxRate)
		}
	}
	spec.Max, err = q.number("max", 0, 1, 1_000_000_000)
	return spec, err
}

// start writes the job down, for the events that the plan has counted.
func (q *request) start() error {
	spec, err := q.spec()
	if err != nil {
		return err
	}
	action, err := q.action()
	if err != nil {
		return err
	}
	count, err := q.number("expected", 0, 0, 1<<62)
	if err != nil {
		return err
	}
	if spec.LastSeq, err = q.number("last_seq", 0, 1, 1<<62); err != nil {
		return err
	}
	if spec.LastAt, err = time.Parse(time.RFC3339Nano, q.text("last_at")); err != nil || spec.LastSeq == 0 {
		return invalid("The form does not say which plan it is about. Plan it again.")
	}
	if spec.Max, err = q.most(count); err != nil {
		return err
	}
	job, err := q.outbox.op.StartJob(q.Context(), action, spec, count)
	if err != nil {
		return err
	}
	http.Redirect(q.w, q.Request, q.path("jobs/"+job.ID.String(), "notice", "started"), http.StatusSeeOther)
	return nil
}

// most is how many events the job may change. More than the usual somebody must have typed.
func (q *request) most(count int64) (int64, error) {
	if count <= operator.DefaultMaxEvents {
		return operator.DefaultMaxEvents, nil
	}
	typed := strings.ReplaceAll(strings.ReplaceAll(q.text("typed"), ",", ""), " ", "")
	if typed != strconv.FormatInt(count, 10) {
		return 0, invalid("The job is about %s events, more than %s: type that number to confirm it.",
			number(count), number(operator.DefaultMaxEvents))
	}
	return count, nil
}
