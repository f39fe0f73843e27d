package memstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Verbs about no event, so that the checker does not know them.
const (
	pause  check.Verb = "pause"
	resume check.Verb = "resume"
)

// Pause has the relays publish nothing of a scope. Refused: it is paused already.
func (s *Store) Pause(order Order, scope core.Scope, name string) (Outcome, error) {
	return s.order(pause, order, scope, name, func(at int, found bool) bool {
		if !found {
			since := s.config.Epoch.Add(s.now())
			s.pauses = slices.Insert(s.pauses, at, core.Pause{
				Scope: scope, Name: name, Actor: order.Actor, Reason: order.Reason, Since: since,
			})
		}
		return !found
	})
}

// Resume ends a pause. Refused: there is none.
func (s *Store) Resume(order Order, scope core.Scope, name string) (Outcome, error) {
	return s.order(resume, order, scope, name, func(at int, found bool) bool {
		if found {
			s.pauses = slices.Delete(s.pauses, at, at+1)
		}
		return found
	})
}

// order does a verb to the pauses once, at the place of the one that it is about.
func (s *Store) order(verb check.Verb, order Order, scope core.Scope, name string,
	do func(at int, found bool) (done bool),
) (Outcome, error) {
	if err := s.write(); err != nil {
		return "", err
	}
	target := strings.TrimSpace(string(scope) + " " + name)
	if outcome, err := s.sentBefore(verb, order, target); outcome != "" || err != nil {
		return outcome, err
	}
	at, found := slices.BinarySearchFunc(s.pauses, core.Pause{Scope: scope, Name: name}, func(a, b core.Pause) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name))
	})
	if !do(at, found) {
		return NotApplicable, nil
	}
	s.actions = append(s.actions, ActionRow{
		Action: order.Action, Verb: verb, Actor: order.Actor, Reason: order.Reason,
		Target: target, Next: s.config.Next(),
	})
	s.flush()
	return Done, nil
}

// sentBefore is DoneBefore if this same action was done. One that was about something else has another id.
func (s *Store) sentBefore(verb check.Verb, order Order, target string) (Outcome, error) {
	for _, action := range s.actions {
		switch {
		case action.Action != order.Action:
		case action.Verb != verb, action.Target != target:
			return "", fmt.Errorf("memstore: the action's id was used before, for a %s %s", action.Verb, action.Target)
		default:
			return DoneBefore, nil
		}
	}
	return "", nil
}
