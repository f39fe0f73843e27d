package console

import (
	"context"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// auditScreen is what the screen of the log of actions has.
type auditScreen struct {
	Verbs []string
	// What somebody looks for, as the form shows it.
	Actor, Verb, Role, Event, Since, Until string
	Lines                                  []auditLine
	Next                                   string
	// Filtered tells that not all of the log is asked for, Newest that this is its newest page.
	Filtered, Newest bool
}

// auditLine is a line of the log, with the job that it is about or was done by.
type auditLine struct {
	operator.LoggedAction
	Job string
}

// formTime is how a field for a date and time has it.
const formTime = "2006-01-02T15:04"

func (q *request) auditPage() error {
	filter := operator.ActionFilter{
		Actor: q.text("actor"), Verb: q.text("verb"), Role: q.text("role"), After: q.text("after"),
	}
	var err error
	if filter.Since, err = q.moment("since"); err != nil {
		return err
	}
	if filter.Until, err = q.moment("until"); err != nil {
		return err
	}
	if text := q.text("event"); text != "" {
		if filter.Event, err = outbox.ParseID(text); err != nil {
			return invalid("event must be the id of an event.")
		}
	}
	found, err := q.outbox.op.Actions(q.Context(), filter)
	if err != nil {
		return err
	}
	jobs, err := q.outbox.system.jobs.get(q.Context(), "", q.outbox.readJobs)
	if err != nil {
		return err
	}
	screen := &auditScreen{
		Verbs: operator.ActionVerbs(), Actor: filter.Actor, Verb: filter.Verb, Role: filter.Role, Event: q.text("event"),
		Since: inForm(filter.Since), Until: inForm(filter.Until), Next: found.Next, Newest: filter.After == "",
	}
	screen.Filtered = screen.Actor+screen.Verb+screen.Role+screen.Event+screen.Since+screen.Until != ""
	for _, action := range found.Actions {
		screen.Lines = append(screen.Lines, auditLine{action, jobOf(&action, jobs)})
	}
	return q.ok("audit", "Audit", 0, screen)
}

// jobsKnown is how many of the newest jobs are known by their ids. An action of an older one has no link to it.
const jobsKnown = 200

func (s *served) readJobs(ctx context.Context) (map[outbox.ID]bool, error) {
	jobs, err := s.op.Jobs(ctx, true, nil, jobsKnown)
	known := map[outbox.ID]bool{}
	for i := range jobs {
		known[jobs[i].ID] = true
	}
	return known, err
}

// jobOf is the job that an action is about, started, or is a part of; empty: none that is known.
func jobOf(action *operator.LoggedAction, known map[outbox.ID]bool) string {
	if id, ok := strings.CutPrefix(action.Target, "job "); ok {
		if _, err := outbox.ParseID(id); err == nil {
			return id
		}
	}
	if strings.HasPrefix(action.Target, "job: ") || known[action.Action] {
		return action.Action.String()
	}
	return ""
}

// moment reads a date, or a date and time, in UTC.
func (q *request) moment(name string) (time.Time, error) {
	text := q.text(name)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{formTime, "2006-01-02T15:04:05", time.DateTime, time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, invalid("%s must be a date such as 2026-01-31, or a date and time such as "+
		"2026-01-31T15:04, in UTC.", name)
}

func inForm(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(formTime)
}
