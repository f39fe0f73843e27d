package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/posthaste-dev/posthaste/internal/state"
)

// mostOpen is how many open events of an aggregate are shown, from the oldest on.
const mostOpen = 100

// An Aggregate is where the events of one aggregate stand.
type Aggregate struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	// Events are in their order: the first 100 that are open, and the newest.
	Events []Event `json:"events"`
	// Looked is how many events of it were looked at, Open how many of them are neither published nor discarded, and
	// Complete whether those are all.
	Looked   int  `json:"looked"`
	Open     int  `json:"open"`
	Complete bool `json:"complete"`
	// Heads are the events that others of it wait behind, one for each topic at the most: dead and blocking, parked or
	// retrying.
	Heads []Event `json:"heads,omitempty"`
	// Holders are who holds its lane, one for each namespace that has events of it.
	Holders []LaneHolder `json:"holders"`
}

// Aggregate reads the events of an aggregate in their order, and which of them the others wait behind: all that are
// open, up to 100, and as many of the newest as limit says, 20 where it is zero. Where there is none the error is
// [ErrNoEvent].
func (o *Operator) Aggregate(ctx context.Context, aggregateType, id string, limit int) (Aggregate, error) {
	found := Aggregate{Type: aggregateType, ID: id}
	if limit == 0 {
		limit = 20
	}
	switch {
	case limit < 0 || limit > MaxEventPage:
		return found, notUnderstoodError{
			fmt.Errorf("operator: aggregate: the limit is %d, must be between 1 and %d", limit, MaxEventPage),
		}
	case aggregateType == "" || id == "" || len(aggregateType)+len(id) > 4*longestName ||
		!utf8.ValidString(aggregateType+id):
		return found, notUnderstoodError{errors.New("operator: aggregate: name its type and its id")}
	}
	err := o.look(ctx, "aggregate", func(l *looking) error {
		rows, err := l.Query(ctx, l.sql("aggregate", "{columns}", columns), aggregateType, id, limit, mostOpen, mostGathered)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		var over int
		if found.Events, over, err = readEvents(rows, &found.Open); err != nil {
			return err
		}
		found.Looked = over + found.Open
		if len(found.Events) == 0 {
			return fmt.Errorf("%s/%s: %w", aggregateType, id, ErrNoEvent)
		}
		found.Complete = found.Looked < mostGathered
		if err := l.addTopics(ctx, found.Events); err != nil {
			return err
		}
		found.Heads = heads(found.Events)
		return l.addHolders(ctx, &found)
	})
	return found, err
}

// Hidden is how many of the events that were looked at are not among Events: open ones, and others.
func (a *Aggregate) Hidden() (open, over int) {
	open = a.Open
	over = a.Looked - a.Open
	for _, event := range a.Events {
		if event.State == state.Published.String() || event.State == state.Discarded.String() {
			over--
		} else {
			open--
		}
	}
	return open, over
}

// addTopics fills in the topics of events: where those that are open go, and where the dead ones did not. Where others
// went nobody has written down, and today's relays may send their type elsewhere.
func (l *looking) addTopics(ctx context.Context, events []Event) error {
	var types, dead []string
	for _, event := range events {
		types = append(types, event.Type)
		if event.dead() {
			dead = append(dead, event.ID.String())
		}
	}
	topics, err := l.topicsBy(ctx, "topics", types)
	if err != nil {
		return err
	}
	died := map[string]string{}
	if len(dead) > 0 {
		if died, err = l.topicsBy(ctx, "dead_topics", dead); err != nil {
			return err
		}
	}
	for i, event := range events {
		switch {
		case event.dead():
			events[i].Topic = died[event.ID.String()]
		case event.State != state.Published.String() && event.State != state.Discarded.String():
			events[i].Topic = topics[event.Type]
		}
	}
	return nil
}

// dead tells whether it is dead, blocking or not.
func (e *Event) dead() bool {
	return e.State == state.Dead.String() || e.State == state.DeadBlocking.String()
}

// addHolders asks who holds the lanes of the events.
func (l *looking) addHolders(ctx context.Context, found *Aggregate) error {
	for _, event := range found.Events {
		if slices.ContainsFunc(found.Holders, func(h LaneHolder) bool { return h.Lane == event.Lane }) {
			continue
		}
		holder, err := l.holder(ctx, event.Lane)
		if err != nil {
			return err
		}
		found.Holders = append(found.Holders, holder)
	}
	return nil
}

// heads are the first events of each namespace and topic that others wait behind.
func heads(events []Event) []Event {
	var found []Event
	for i, event := range events {
		switch event.State {
		case state.DeadBlocking.String(), state.Parked.String(), state.Retrying.String():
		default:
			continue
		}
		line := func(other Event) bool {
			return other.Namespace == event.Namespace &&
				(other.Topic == event.Topic || other.Topic == "" || event.Topic == "")
		}
		waits := slices.ContainsFunc(events[i+1:], func(later Event) bool {
			return line(later) && (later.State == state.Waiting.String() || later.State == state.Ready.String())
		})
		if waits && !slices.ContainsFunc(found, line) {
			found = append(found, event)
		}
	}
	return found
}
