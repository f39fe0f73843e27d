package memstore

import (
	"fmt"
	"slices"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Order is one decision of an operator.
type Order struct {
	Action outbox.ID // one id for one decision, however often it is sent
	Actor  string
	Reason string
}

// Outcome is what an order came to for one event, in the words of the relay's operator.
type Outcome string

// The outcomes.
const (
	Done          Outcome = "done"
	DoneBefore    Outcome = "done before"
	NotApplicable Outcome = "not applicable" // the event is in no state for it, or the action was over
	NotFound      Outcome = "not found"
)

// Result is what an order came to for one event.
type Result struct {
	Event   outbox.ID
	Outcome Outcome
	Was     core.State // when it was found
}

// Operate does one of the verbs redrive, skip, release and discard. Each event must be in a state that the
// verb starts from. An action that changed something is over: sent again, it changes nothing.
func (s *Store) Operate(verb check.Verb, order Order, events ...outbox.ID) ([]Result, error) {
	if err := s.write(); err != nil {
		return nil, err
	}
	var before []ActionRow
	for _, action := range s.actions {
		if action.Action == order.Action {
			before = append(before, action)
		}
		if action.Action == order.Action && action.Verb != verb {
			return nil, fmt.Errorf("memstore: the action's id was used before, for a %s", action.Verb)
		}
	}
	results := make([]Result, len(events))
	var heads []*row
	for i, id := range events {
		results[i] = s.act(verb, order, id, before, &heads)
	}
	s.promote(heads, verb, order)
	if len(before) == 0 {
		s.flush()
	}
	return results, nil
}

// starts tells whether a verb may be used on an event in this state.
func starts(verb check.Verb, state core.State) bool {
	switch verb {
	case check.Redrive, check.Discard:
		return state == core.DeadBlocking || state == core.Dead
	case check.Skip:
		return state == core.DeadBlocking
	case check.Free:
		return state == core.Parked
	default: // redeliver and reissue leave the row alone
		return false
	}
}

// act does the verb to one event, and adds it to the heads whose followers go.
func (s *Store) act(verb check.Verb, order Order, id outbox.ID, before []ActionRow, heads *[]*row) Result {
	r := s.events[id]
	result := Result{Event: id, Outcome: NotFound}
	if r != nil && r.visible {
		result.Outcome, result.Was = NotApplicable, r.State
	}
	switch {
	case slices.ContainsFunc(before, func(a ActionRow) bool { return a.Event == id }):
		result.Outcome = DoneBefore
		return result
	case result.Outcome == NotFound, len(before) > 0, !starts(verb, r.State):
		return result
	}
	blocking := r.State == core.DeadBlocking
	s.change(verb, order, r)
	if blocking && verb != check.Redrive {
		*heads = append(*heads, r)
	}
	s.actions = append(s.actions, ActionRow{
		Action: order.Action, Verb: verb, Event: id, Letter: s.letterOf(verb, id), Actor: order.Actor, Reason: order.Reason,
		Next: s.config.Next(),
	})
	result.Outcome = Done
	return result
}

func by(verb check.Verb, order Order) string { return string(verb) + " " + order.Actor }

func (s *Store) change(verb check.Verb, order Order, r *row) {
	switch verb {
	case check.Redrive:
		r.Attempts = 0
		s.retry(r, 0, by(verb, order))
	case check.Free:
		s.retry(r, 0, by(verb, order))
	case check.Skip:
		s.move(r, core.Dead, by(verb, order))
	case check.Discard:
		s.move(r, core.Discarded, by(verb, order))
	default: // starts knows no other
	}
}

// letterOf returns the newest dead letter of the event, 0 if it has none or the verb is not about one.
func (s *Store) letterOf(verb check.Verb, id outbox.ID) int64 {
	for _, letter := range slices.Backward(s.letters) {
		if letter.Event == id && verb != check.Free {
			return letter.ID
		}
	}
	return 0
}

// promote makes retries of those who wait behind the heads: a relay looks for retries that are due. The
// topic is the registry's to know, so behind each head it is the first of each event type, unless another
// held event of its type is still before it.
func (s *Store) promote(heads []*row, verb check.Verb, order Order) {
	var first []*row
	for _, head := range heads {
		var types []string
		for _, r := range s.lane(head.Lane).held[head.Aggregate] {
			if r.State == core.Waiting && r.Seq > head.Seq && !slices.Contains(types, r.Type) {
				types = append(types, r.Type)
				first = append(first, r)
			}
		}
	}
	first = slices.DeleteFunc(first, func(r *row) bool {
		return slices.ContainsFunc(s.lane(r.Lane).held[r.Aggregate], func(b *row) bool {
			return b.Seq < r.Seq && b.State != core.Waiting && b.Type == r.Type
		})
	})
	for _, r := range first {
		if r.State == core.Waiting { // two heads may have the same follower
			s.retry(r, 0, by(verb, order))
		}
	}
}
