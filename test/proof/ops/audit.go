package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

type logged struct {
	At    time.Time
	Event string
}

// audit compares the log of a job's action with the events that it changed, and with its rate.
func (r *run) audit(ctx context.Context, what order, report *JobReport) error {
	rows, err := read[logged](ctx, r.db, `SELECT a.acted_at, a.event_id::text FROM public.outbox_actions a
		WHERE a.action_id = $1::text::uuid AND a.verb = $2 AND a.target IS NULL AND a.actor = $3 AND a.reason = $4
		ORDER BY a.acted_at`, what.Action.ID.String(), string(what.Verb), what.Action.Actor, what.Action.Reason)
	if err != nil {
		return err
	}
	report.Logged = len(rows)
	seen := map[string]bool{}
	begin := 0
	for i, row := range rows {
		if seen[row.Event] {
			report.Twice++
		}
		seen[row.Event] = true
		for row.At.Sub(rows[begin].At) >= time.Second {
			begin++
		}
		report.Fastest = max(report.Fastest, i-begin+1)
	}
	// What was changed is seen by what it has become, whoever says that it was: a dead event that is published, and a
	// request.
	changed := "SELECT e.id::text FROM public.outbox_dlq d JOIN public.outbox_events e ON e.id = d.event_id " +
		"WHERE e.state = 6 AND $1::text IS NOT NULL"
	if what.Verb == operator.VerbRedeliver {
		changed = "SELECT q.event_id::text FROM public.outbox_requests q WHERE q.action_id = $1::text::uuid"
	}
	events, err := read[struct{ Event string }](ctx, r.db, changed, what.Action.ID.String())
	if err != nil {
		return err
	}
	for _, event := range events {
		if !seen[event.Event] {
			report.Unlogged++
		}
	}
	if len(events) < len(seen) {
		return fmt.Errorf("ops: the log has %d events, and %d were changed", len(seen), len(events))
	}
	return nil
}
