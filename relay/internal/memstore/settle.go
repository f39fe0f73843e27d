package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Settle applies all of it if every lane is still the owner's, and otherwise nothing.
func (s *Store) Settle(_ context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	if err := s.write(); err != nil {
		return core.SettleAnswer{}, err
	}
	var answer core.SettleAnswer
	for _, number := range settle.Lanes {
		if s.holding(settle.Owner, number) != nil {
			answer.Held = append(answer.Held, number)
		}
	}
	slices.Sort(answer.Held)
	if len(answer.Held) < len(settle.Lanes) || s.relay(settle.Owner) == nil {
		return answer, nil
	}
	changes := len(s.changes)
	unchanged := s.settleEvents(settle)
	for _, number := range settle.ClearNotes {
		if lane := s.holding(settle.Owner, number); lane != nil {
			lane.marker, lane.crashCount = marker{}, 0
			s.flush()
		}
	}
	if len(s.changes) > changes { // a commit that wrote nothing waits for no disk
		s.flush()
	}
	return core.SettleAnswer{Applied: true, Unchanged: unchanged}, nil
}

// settleEvents changes the rows that are as they were read, and returns the others, by id.
func (s *Store) settleEvents(settle *core.Settle) (unchanged []outbox.ID) {
	by := "settle " + settle.Token.String()
	for _, found := range settle.Published {
		if r := s.find(found, core.Ready, core.Retrying, core.Waiting); r != nil {
			s.move(r, core.Published, by)
		}
	}
	for _, retry := range settle.Retry {
		if r := s.find(retry.Found, core.Ready, core.Retrying, core.Waiting); r != nil && r.Version == retry.Version {
			r.Attempts, r.lastError = retry.Attempts, retry.Error
			s.retry(r, retry.Delay, by)
		} else {
			unchanged = append(unchanged, retry.ID)
		}
	}
	for _, found := range settle.Wait {
		if r := s.find(found, core.Ready); r != nil {
			s.move(r, core.Waiting, by)
		}
	}
	for _, park := range settle.Park {
		if r := s.find(park.Found, core.Ready, core.Retrying, core.Waiting); r != nil && r.Version == park.Version {
			r.lastError = park.Error
			s.move(r, core.Parked, by)
		} else {
			unchanged = append(unchanged, park.ID)
		}
	}
	first := len(s.letters)
	for i := range settle.Dead {
		death := &settle.Dead[i]
		r := s.find(death.Found, core.Ready, core.Retrying, core.Parked, core.Waiting)
		if r != nil && r.Version == death.Version {
			s.die(r, death, by)
		} else {
			unchanged = append(unchanged, death.ID)
		}
	}
	slices.SortFunc(s.letters[first:], func(a, b LetterRow) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range s.letters[first:] {
		s.letters[first+i].ID = int64(first+i) + 1
	}
	slices.SortFunc(unchanged, func(a, b outbox.ID) int { return bytes.Compare(a[:], b[:]) })
	return unchanged
}

// find returns the visible row if it is in one of these states.
func (s *Store) find(found core.Found, states ...core.State) *row {
	r := s.events[found.ID]
	if r == nil || !r.visible || r.Lane != found.Lane || r.Seq != found.Seq || !slices.Contains(states, r.State) {
		return nil
	}
	return r
}

func (s *Store) move(r *row, to core.State, by string) { s.moveUntil(r, to, s.now(), by) }

func (s *Store) retry(r *row, delay time.Duration, by string) {
	s.moveUntil(r, core.Retrying, s.now()+delay, by)
}

// moveUntil gives a row another state, and a version of its own if it is held then.
func (s *Store) moveUntil(r *row, to core.State, due time.Duration, by string) {
	s.changes = append(s.changes, Change{ID: r.ID, From: r.State, To: to, By: by})
	s.removeFromIndex(r)
	r.State, r.due, r.Version = to, due, 0
	if held(to) {
		s.versions++
		r.Version = s.versions
	}
	s.addToIndex(r)
}

func (s *Store) die(r *row, death *core.Death, by string) {
	r.Attempts, r.lastError = death.Attempts, cmp.Or(death.Detail, death.Reason)
	to := core.Dead
	if death.Blocking {
		to = core.DeadBlocking
	}
	s.move(r, to, by)
	s.letters = append(s.letters, LetterRow{
		Event: r.ID, Seq: r.Seq, Attempts: death.Attempts, Blocking: death.Blocking,
		Topic: death.Topic, Reason: death.Reason, Detail: death.Detail, Payload: r.Payload, Headers: r.Headers,
		Next: s.config.Next(),
	})
}

// Unpark sets parked rows of the types to retrying, in those of the lanes that are still held.
func (s *Store) Unpark(_ context.Context, unpark core.Unpark) (core.UnparkAnswer, error) {
	if err := s.write(); err != nil {
		return core.UnparkAnswer{}, err
	}
	var answer core.UnparkAnswer
	answer.Seen, answer.Page = s.lookAtParked(unpark.Owner, unpark.Lanes, unpark.Limit, s.holding, func(r *row) bool {
		if slices.Contains(unpark.Types, r.Type) {
			s.retry(r, 0, fmt.Sprintf("unpark %s", unpark.Token))
			s.flush()
		}
		return true
	})
	return answer, nil
}
