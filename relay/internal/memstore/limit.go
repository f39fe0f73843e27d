package memstore

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// limit is a verb about no event, as those of pauses are.
const limit check.Verb = "limit"

// Limit has all relays together begin so many publishes to a topic a second; zero ends that. Refused: it is so already.
func (s *Store) Limit(order Order, topic string, rate float64) (Outcome, error) {
	if err := s.write(); err != nil {
		return "", err
	}
	target := "topic " + topic + " none"
	if rate > 0 {
		target = "topic " + topic + " " + strconv.FormatFloat(rate, 'f', -1, 64)
	}
	if outcome, err := s.sentBefore(limit, order, target); outcome != "" || err != nil {
		return outcome, err
	}
	at, found := slices.BinarySearchFunc(s.limits, topic, func(l core.Limit, topic string) int {
		return cmp.Compare(l.Topic, topic)
	})
	switch {
	case rate == 0 && !found, rate > 0 && found && s.limits[at].Rate == rate:
		return NotApplicable, nil
	case rate == 0:
		s.limits = slices.Delete(slices.Clone(s.limits), at, at+1)
	default:
		s.limits = slices.Clone(s.limits)
		if !found {
			s.limits = slices.Insert(s.limits, at, core.Limit{})
		}
		s.limits[at] = core.Limit{
			Topic: topic, Rate: rate, Actor: order.Actor, Reason: order.Reason, Since: s.config.Epoch.Add(s.now()),
		}
	}
	s.actions = append(s.actions, ActionRow{
		Action: order.Action, Verb: limit, Actor: order.Actor, Reason: order.Reason, Target: target, Next: s.config.Next(),
	})
	s.flush()
	return Done, nil
}
