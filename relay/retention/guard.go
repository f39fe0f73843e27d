package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// memory is what the database knows of the last run, and its clock.
type memory struct {
	now    time.Time
	cutOff *time.Time
	ranAt  *time.Time
	events *time.Time // the cut-off of events, whatever the kind; nil: none was ever deleted
}

// reach is up to when rows of the kind can go, given its cut-off. A dedupe key goes only after its event, and an event
// is published no earlier than it was created: so a key that is younger than the events' own cut-off still has its
// event. To look at each such key would take hours where events are kept for years. So keys go up to the earlier of
// the two cut-offs.
func (k kind) reach(cutOff time.Time, events *time.Time) time.Time {
	switch {
	case !k.followsEvents || events != nil && events.After(cutOff):
		return cutOff
	case events == nil:
		return time.Unix(0, 0)
	default:
		return *events
	}
}

// implausible says why the cut-off cannot be right, or "". Steps of a few runs are left alone; a longer one must not
// take the greater part; one beyond MaxStep is never believed. Nobody can tell a wrong clock from a long silence by
// the database alone, so in doubt a person must.
func (r *run) implausible(ctx context.Context, last memory, cutOff time.Time) (string, error) {
	ordinary := ordinarySteps * r.config.Every
	if !cutOff.After(r.config.Confirmed) {
		return "", nil
	}
	if last.ranAt != nil && last.now.Before(last.ranAt.Add(-ordinary)) {
		return r.unconfirmed(cutOff, fmt.Sprintf("the last run was at %s, which is %s ahead: the clock went back",
			stamp(*last.ranAt), last.ranAt.Sub(last.now).Round(time.Second))), nil
	}
	if last.cutOff != nil {
		step := cutOff.Sub(*last.cutOff)
		if step > r.config.MaxStep {
			return r.unconfirmed(cutOff, fmt.Sprintf("the cut-off would move by %s, from %s to %s, and %s is the most: the "+
				"clock went ahead, a window was shortened, or nothing ran for long",
				step.Round(time.Second), stamp(*last.cutOff), stamp(cutOff), r.config.MaxStep)), nil
		}
		if step <= ordinary {
			return "", nil
		}
	}
	if r.kind.due == nil {
		return "", nil
	}
	reach := r.kind.reach(cutOff, last.events)
	found, err := r.kind.due(r, ctx, reach)
	if sqlstate.Of(err) == sqlstate.QueryCanceled {
		return "", fmt.Errorf("%w; if the clock is right, set Confirmed to %s", err, stamp(reach.Add(24*time.Hour)))
	}
	if err != nil {
		return "", err
	}
	due := found.total()
	if due < fewRows || found.staying >= due {
		return "", nil
	}
	about := ""
	if found.estimated {
		about = "about "
	}
	return r.unconfirmed(cutOff, fmt.Sprintf("%s%d rows would go and %d stay: that is the greater part of them",
		about, due, found.staying)), nil
}

// unconfirmed adds to the reason what a person can do. A day more than the cut-off, because it moves on until the next
// run.
func (r *run) unconfirmed(cutOff time.Time, reason string) string {
	return fmt.Sprintf("%s. If this is right, set Confirmed to %s", reason, stamp(cutOff.Add(24*time.Hour)))
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
