package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// relay is a row of outbox_relays, with its newest beat and what it knows.
type relay struct {
	id, token     outbox.ID
	name, version string
	ended         bool
	known         []string
	beat          beat
}

// beat is a row of outbox_beats.
type beat struct {
	number int64
	until  time.Duration
	lanes  []core.Progress
}

// relay returns the owner's row if it was not ended, otherwise nil.
func (s *Store) relay(owner core.Owner) *relay {
	at := slices.IndexFunc(s.relays, func(r relay) bool { return r.id == owner.Relay })
	if at < 0 || s.relays[at].token != owner.Token || s.relays[at].ended {
		return nil
	}
	return &s.relays[at]
}

// Heartbeat says that the relay is alive. One that has expired and that nobody ended is alive again.
func (s *Store) Heartbeat(_ context.Context, said core.Heartbeat) (core.HeartbeatAnswer, error) {
	if err := s.write(); err != nil {
		return core.HeartbeatAnswer{}, err
	}
	if said.Register != nil {
		s.enlist(relay{
			id: said.Relay, token: said.Token, name: said.Register.Name, version: said.Register.Version,
			known: slices.Clone(said.Register.Types),
		})
	}
	answer := core.HeartbeatAnswer{Incarnation: s.incarnationName()}
	own := s.relay(said.Owner)
	if answer.Ended = own == nil; own != nil {
		s.beat(own, said)
		for i := range s.lanes {
			if s.lanes[i].owner == own.id {
				answer.Held = append(answer.Held, s.config.First+int16(i))
			}
		}
	}
	for _, r := range s.relays {
		if r.ended {
			continue
		}
		peer := core.Peer{ID: r.id, Expired: r.beat.until < s.now()}
		if !slices.Contains(said.Met, r.id) {
			peer.KnownTypes = append([]string{}, r.known...)
		}
		answer.Relays = append(answer.Relays, peer)
	}
	answer.Lanes = make([]core.LaneView, len(s.lanes))
	for i := range s.lanes {
		answer.Lanes[i] = core.LaneView{
			Lane: s.config.First + int16(i), Owner: s.lanes[i].owner, Token: s.lanes[i].token,
			Needs: slices.Clone(s.lanes[i].needs),
		}
	}
	answer.Pauses, answer.Limits = slices.Clone(s.pauses), slices.Clone(s.limits)
	answer.Requested = slices.ContainsFunc(s.requests, func(r RequestRow) bool { return r.State == core.RequestOpen })
	return answer, nil
}

// beat writes a beat, unless the relay only looks. One that comes late is not the newest.
func (s *Store) beat(own *relay, said core.Heartbeat) {
	if said.Number == 0 {
		return
	}
	s.flush()
	if said.Number <= own.beat.number {
		return
	}
	told := slices.Clone(said.Lanes)
	for i := range told {
		if !s.about(said.Incarnation) {
			told[i].Floor, told[i].Swept = 0, 0
		}
		before := own.told(told[i].Lane)
		told[i].Floor, told[i].Swept = max(told[i].Floor, before.Floor), max(told[i].Swept, before.Swept)
	}
	own.beat = beat{number: said.Number, until: s.now() + said.Lease, lanes: told}
}

// told is how far a lane is by the newest beat.
func (r *relay) told(lane int16) (told core.Progress) {
	for _, progress := range r.beat.lanes {
		if progress.Lane == lane {
			told = progress
		}
	}
	return told
}

// about tells whether floors are about this server.
func (s *Store) about(incarnation string) bool {
	return incarnation == "" || incarnation == s.incarnationName()
}

// enlist writes the relay's row, in the order of the ids, unless it is there.
func (s *Store) enlist(r relay) {
	at, found := slices.BinarySearchFunc(s.relays, r.id, func(r relay, id outbox.ID) int {
		return slices.Compare(r.id[:], id[:])
	})
	if !found {
		s.relays = slices.Insert(s.relays, at, r)
	}
}

// EndExpired ends relays that have not beaten for a lease.
func (s *Store) EndExpired(_ context.Context, end core.EndExpired) (ended []outbox.ID, err error) {
	if err := s.write(); err != nil {
		return nil, err
	}
	for i := range s.relays {
		r := &s.relays[i]
		if len(ended) >= end.Max || r.ended || r.id == end.Relay || r.beat.until >= s.now() {
			continue
		}
		for number := range s.lanes {
			if lane := &s.lanes[number]; lane.owner == r.id {
				s.ended(lane, s.config.First+int16(number), r, !end.Away)
			}
		}
		r.ended = true
		s.forgetTopics(r.id)
		ended = append(ended, r.id)
	}
	if len(ended) > 0 {
		s.flush()
	}
	return ended, nil
}

// ended frees a lane whose owner is ended.
func (s *Store) ended(lane *lane, number int16, owner *relay, counted bool) {
	if counted {
		lane.marker.died(lane.token)
	}
	if at := slices.IndexFunc(owner.beat.lanes, func(p core.Progress) bool { return p.Lane == number }); at >= 0 {
		lane.progress(owner.beat.lanes[at], true)
	}
	if counted {
		lane.crashCount++
	}
	lane.crashed = true
	lane.free()
}
