package modeltest

import (
	"context"
	"fmt"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// pause pauses something, or rarely what is paused already.
func (s *script) pause() *step {
	if standing := s.model.mem.Pauses(); len(standing) > 0 && s.chance(30) {
		paused := pick(s, standing)
		return s.ordering("pauses", paused.Scope, paused.Name, side.pause)
	}
	scope, name := core.ScopeAll, ""
	switch s.rng.IntN(5) {
	case 0, 1:
		scope, name = core.ScopeTopic, pick(s, []string{"orders", "bills"})
	case 2, 3:
		scope, name = core.ScopeType, pick(s, eventTypes)
	}
	return s.ordering("pauses", scope, name, side.pause)
}

// resume resumes something that is paused, or rarely something that is not.
func (s *script) resume() *step {
	standing := s.model.mem.Pauses()
	if s.chance(20) {
		return s.ordering("resumes", core.ScopeTopic, "orders", side.resume)
	}
	if len(standing) == 0 {
		return nil
	}
	paused := pick(s, standing)
	return s.ordering("resumes", paused.Scope, paused.Name, side.resume)
}

// limit limits a topic, changes that, or ends it; rarely what is so already, or not at all.
func (s *script) limit() *step {
	topic, rate := pick(s, []string{"orders", "bills", "copies"}), pick(s, []float64{0, 0, 0.5, 20, 1000})
	return s.ordered("limits", fmt.Sprintf("%q %v", topic, rate),
		func(ctx context.Context, side side, order order) (string, error) {
			return side.limit(ctx, topic, rate, order)
		})
}

func (s *script) ordering(what string, scope core.Scope, name string,
	do func(side, context.Context, core.Scope, string, order) (string, error),
) *step {
	return s.ordered(what, fmt.Sprintf("%s %q", scope, name),
		func(ctx context.Context, side side, order order) (string, error) {
			return do(side, ctx, scope, name, order)
		})
}

// ordered is a decision about no event.
func (s *script) ordered(what, about string, do func(context.Context, side, order) (string, error)) *step {
	order := order{Action: s.newID(actionID), Actor: "ann", Reason: pick(s, []string{"wrong", "fixed"})}
	if s.chance(10) {
		order.Action = newID(actionID, max(s.ids[actionID]-1, 1)) // sent before, for this or for something else
	}
	return &step{
		what: fmt.Sprintf("%s %+v", about, order),
		do: func(ctx context.Context, side side) ([]string, error) {
			outcome, err := do(ctx, side, order)
			return []string{outcome}, err
		},
		learn: func(answer []string) {
			if answer[0] == "done" {
				s.saw[what+"_done"]++
			} else {
				s.saw[what+"_refused"]++
			}
		},
	}
}
