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
	for _, id := range settle.Published {
		if r := s.find(id, core.Ready, core.Retrying, core.Waiting); r != nil {
			s.move(r, core.Published, by)
		}
	}
	for _, retry := range settle.Retry {
		if r := s.find(retry.ID, core.Ready, core.Retrying, core.Waiting); r != nil && s.found(r) == retry.From {
			r.Attempts, r.lastError = retry.Attempts, retry.Error
			s.retry(r, retry.Delay, by)
		} else {
			unchanged = append(unchanged, retry.ID)
		}
	}
	for _, id := range settle.Wait {
		if r := s.find(id, core.Ready); r != nil {
			s.move(r, core.Waiting, by)
		}
	}
	for _, park := range settle.Park {
		if r := s.find(park.ID, core.Ready, core.Retrying, core.Waiting); r != nil && s.found(r) == park.From {
			r.lastError = park.Error
			s.park(r, by)
		} else {
			unchanged = append(unchanged, park.ID)
		}
	}
	first := len(s.letters)
	for i := range settle.Dead {
		death := &settle.Dead[i]
		if r := s.find(death.ID, core.Ready, core.Retrying, core.Parked, core.Waiting); r != nil && s.found(r) == death.From {
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
func (s *Store) find(id outbox.ID, states ...core.State) *row {
	r := s.events[id]
	if r == nil || !r.visible || !slices.Contains(states, r.State) {
		return nil
	}
	return r
}

func (s *Store) move(r *row, to core.State, by string) {
	s.changes = append(s.changes, Change{ID: r.ID, From: r.State, To: to, By: by})
	s.removeFromIndex(r)
	r.State = to
	s.addToIndex(r)
}

// found is the row as a reader finds it.
func (s *Store) found(r *row) core.Found { return core.Found{State: r.State, At: s.at(r)} }

func (s *Store) park(r *row, by string) {
	s.changes = append(s.changes, Change{ID: r.ID, From: r.State, To: core.Parked, By: by})
	s.removeFromIndex(r)
	r.State, r.due = core.Parked, s.now()
	s.addToIndex(r)
}

func (s *Store) retry(r *row, delay time.Duration, by string) {
	s.changes = append(s.changes, Change{ID: r.ID, From: r.State, To: core.Retrying, By: by})
	s.removeFromIndex(r)
	r.State, r.due = core.Retrying, s.now()+delay
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
func (s *Store) Unpark(_ context.Context, unpark core.Unpark) error {
	if err := s.write(); err != nil {
		return err
	}
	for _, number := range unpark.Lanes {
		lane := s.holding(unpark.Owner, number)
		if lane == nil {
			continue
		}
		for _, r := range slices.Clone(lane.parked) {
			if slices.Contains(unpark.Types, r.Type) {
				s.retry(r, 0, fmt.Sprintf("unpark %s", unpark.Token))
				s.flush()
			}
		}
	}
	return nil
}
