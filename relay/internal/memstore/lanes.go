package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// lane is a row of outbox_lanes, with the index of its events and its row of outbox_markers.
type lane struct {
	index
	owner, token outbox.ID // zero: nobody's
	floor, swept int64
	needs        []string
	crashed      bool
	crashCount   int
	marker       marker
}

// marker is a row of outbox_markers; without an event there is none.
type marker struct {
	event  outbox.ID
	token  outbox.ID // zero: it is not being sent
	deaths int
}

// free gives the lane back.
func (l *lane) free() { l.owner, l.token = outbox.ID{}, outbox.ID{} }

// progress takes in what its owner says about the lane; the floor only if it is about this server.
func (l *lane) progress(progress core.Progress, about bool) {
	l.needs = slices.Clone(progress.Needs)
	if about {
		l.rise(progress)
	}
	if progress.Calm {
		l.crashCount = 0
	}
}

// rise takes in how far the lane is, which is never less than before.
func (l *lane) rise(to core.Progress) {
	l.floor, l.swept = max(l.floor, to.Floor), max(l.swept, to.Swept)
}

// holding returns the lane if it is this owner's, otherwise nil.
func (s *Store) holding(owner core.Owner, number int16) *lane {
	lane := s.lane(number)
	if lane == nil || s.relay(owner) == nil || lane.owner != owner.Relay {
		return nil
	}
	return lane
}

// seen is the incarnation, and which of the lanes are not the owner's.
func (s *Store) seen(owner core.Owner, lanes ...int16) core.Seen {
	seen := core.Seen{Incarnation: s.incarnationName()}
	for _, number := range lanes {
		if owner != (core.Owner{}) && s.holding(owner, number) == nil && !slices.Contains(seen.Lost, number) {
			seen.Lost = append(seen.Lost, number)
		}
	}
	return seen
}

// shown is the lane if a look may show it, otherwise nil.
func (s *Store) shown(owner core.Owner, number int16) *lane {
	if owner == (core.Owner{}) {
		return s.lane(number)
	}
	return s.holding(owner, number)
}

// Acquire takes lanes in the order in which they are listed.
func (s *Store) Acquire(_ context.Context, take core.Acquire) (core.AcquireAnswer, error) {
	if err := s.write(); err != nil {
		return core.AcquireAnswer{}, err
	}
	answer := core.AcquireAnswer{Incarnation: s.incarnationName()}
	if s.relay(take.Owner) == nil {
		return answer, nil
	}
	for _, number := range take.Lanes {
		lane := s.lane(number)
		if len(answer.Lanes) >= take.Max {
			break
		}
		if lane == nil || lane.owner != (outbox.ID{}) {
			continue
		}
		lane.owner, lane.token = take.Relay, take.Tenure
		answer.Lanes = append(answer.Lanes, core.Acquired{
			Lane: number, Floor: lane.floor, Swept: lane.swept, Crashed: lane.crashed, CrashCount: lane.crashCount,
			NotedEvent: lane.marker.event, NotedCount: lane.marker.deaths,
		})
	}
	if len(answer.Lanes) > 0 {
		s.flush()
	}
	return answer, nil
}

// Release gives lanes back. Crashes before it still count: only calm ends them.
func (s *Store) Release(_ context.Context, give core.Release) error {
	if err := s.write(); err != nil {
		return err
	}
	relay := s.relay(give.Owner)
	if relay == nil {
		return nil
	}
	for _, progress := range give.Lanes {
		if lane := s.holding(give.Owner, progress.Lane); lane != nil && lane.token == progress.Token {
			lane.progress(progress, s.about(give.Incarnation))
			lane.crashed = false
			lane.rise(relay.told(progress.Lane))
			lane.free()
		}
	}
	for i := range s.lanes {
		if lane := &s.lanes[i]; lane.owner == give.Relay && (give.End || slices.Contains(give.Tokens, lane.token)) {
			lane.rise(relay.told(s.config.First + int16(i)))
			lane.free()
		}
	}
	if relay.ended = give.End; relay.ended {
		s.forgetTopics(relay.id)
	}
	s.flush()
	return nil
}

// Note writes down which event is about to be sent alone.
func (s *Store) Note(_ context.Context, note core.Note) (bool, error) {
	if err := s.write(); err != nil {
		return false, err
	}
	lane := s.holding(note.Owner, note.Tenure.Lane)
	if lane == nil || lane.token != note.Tenure.Token {
		return false, nil
	}
	m := &lane.marker
	mine := m.token == note.Tenure.Token
	switch {
	case m.deaths == 0:
		*m = marker{event: note.Event, token: note.Tenure.Token}
	case note.Event == (outbox.ID{}):
		if m.token = (outbox.ID{}); note.Outlived && mine {
			m.deaths--
		}
	case m.event == note.Event:
		m.token = note.Tenure.Token
	default: // relays have died with another event: that one stays until it is settled, or enough has spoken for it
		m.token = outbox.ID{}
	}
	if note.Event == (outbox.ID{}) && m.deaths == 0 {
		*m = marker{}
	}
	s.flush()
	return true, nil
}

// died counts the death of the lane's owner against the event that it was sending, or for the one that it was not.
func (m *marker) died(token outbox.ID) {
	switch {
	case m.event == outbox.ID{}:
	case m.token == token:
		m.deaths++
	case m.token == outbox.ID{}:
		m.deaths = max(0, m.deaths-1)
	}
}

// ExpireRelay lets a relay's lease run out: what a model test does in place of letting time pass.
func (s *Store) ExpireRelay(id outbox.ID) {
	for i := range s.relays {
		if s.relays[i].id == id {
			s.relays[i].beat.until = s.now() - time.Second
		}
	}
}

// FreeLane takes a lane from its owner, as nobody does but somebody who changes the tables by hand.
func (s *Store) FreeLane(number int16) { s.lane(number).free() }
