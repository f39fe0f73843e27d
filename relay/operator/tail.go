package operator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
)

// The bounds of a tail.
const (
	mostFollowed = 1_000  // open events whose next state is waited for
	mostKnown    = 20_000 // events that were told already
	tailPages    = 5      // of MaxEventPage per look
	// tailSlack is how old the id of an event may be that is new: its transaction was open, or a clock is behind.
	tailSlack = 10 * time.Minute
)

// A Change is an event that is new, or in another state than it was.
type Change struct {
	Event
	// Was is the state before; empty: the event is new.
	Was string `json:"was,omitempty"`
}

// A Tail follows the events of a filter. Each [Tail.Next] is one look; who calls it decides how often.
type Tail struct {
	operator *Operator
	filter   Filter
	known    map[outbox.ID]string // the state that was told last
	order    []outbox.ID          // of known, the oldest first
	begun    bool
	oldest   *Event // of the first look; nil: it saw all that there was
}

// Tail begins to follow the events of a filter, from the newest few on.
func (o *Operator) Tail(filter Filter) *Tail {
	return &Tail{operator: o, filter: filter, known: map[outbox.ID]string{}}
}

// Next returns what has happened since the last look, the oldest first: events that are new, and those of the newest
// thousand open ones that are in another state. The first look returns the newest events that there are, at most
// begin. Of the newest 5,000 events all that are new are told, also those that commit behind others. What comes faster
// than 5,000 events per look is not all told: left is true then.
func (t *Tail) Next(ctx context.Context, begin int) (changes []Change, left bool, err error) {
	changes, err = t.followed(ctx)
	if err != nil {
		return nil, false, err
	}
	first := !t.begun
	fresh, began, left, err := t.untold(ctx, first)
	if err != nil {
		return nil, false, err
	}
	for _, change := range changes { // not before: a look that fails is done again
		t.known[change.ID] = change.State
	}
	for i, event := range fresh {
		if !first || i < begin {
			changes = append(changes, Change{Event: event})
		}
	}
	for _, event := range slices.Backward(fresh) {
		t.remember(event)
	}
	// The next search without an index goes no further back than this: what is new has a new id. The time is the
	// database's, because the clock here may be ahead.
	t.begun, t.filter.since = true, began.Add(-tailSlack)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Seq, b.Seq) })
	return changes, left, nil
}

// untold finds the events that are not known, the newest first. The first look goes as far back as the next one will:
// what that one finds for the first time is new.
func (t *Tail) untold(ctx context.Context, first bool) (fresh []Event, began time.Time, left bool, err error) {
	filter, page := t.filter, Page{Limit: MaxEventPage}
	for pages := 1; ; pages++ {
		found, err := t.operator.Events(ctx, filter, page)
		if err != nil {
			return nil, began, false, err
		}
		if pages == 1 {
			began = found.at
		}
		before := len(fresh)
		for _, event := range found.Events {
			if _, told := t.known[event.ID]; told {
				continue
			}
			if !t.tooOld(event, found.Window.By) {
				fresh = append(fresh, event)
			}
		}
		// Also behind what was told: an event that commits late has an old id.
		if page.After = found.Next; page.After == "" {
			return fresh, began, false, nil
		}
		if pages == tailPages {
			if first && len(fresh) > 0 {
				t.oldest = &fresh[len(fresh)-1]
			}
			return fresh, began, !first && len(fresh) > before, nil
		}
		if first {
			filter.since = began.Add(-tailSlack)
		}
	}
}

// tooOld tells whether an event is behind all that the first look could see: others before it have gone, and it is
// not new. by is how it was found.
func (t *Tail) tooOld(event Event, by string) bool {
	switch {
	case t.oldest == nil:
		return false
	case by == "type": // in the order of numbers
		return event.Seq < t.oldest.Seq
	default:
		return slices.Compare(event.ID[:], t.oldest.ID[:]) < 0
	}
}

// followed looks at the open events that were told.
func (t *Tail) followed(ctx context.Context) ([]Change, error) {
	var open []outbox.ID
	for _, id := range slices.Backward(t.order) {
		if is := t.known[id]; is != state.Published.String() && is != state.Discarded.String() && len(open) < mostFollowed {
			open = append(open, id)
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	found, err := t.operator.Events(ctx, Filter{IDs: open}, Page{Limit: MaxEventPage})
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, event := range found.Events {
		if was := t.known[event.ID]; was != event.State {
			changes = append(changes, Change{Event: event, Was: was})
		}
	}
	return changes, nil
}

// remember keeps an event, and forgets the one that was told longest ago.
func (t *Tail) remember(event Event) {
	t.known[event.ID] = event.State
	t.order = append(t.order, event.ID)
	if len(t.order) > mostKnown {
		delete(t.known, t.order[0])
		t.order = t.order[1:]
	}
}
