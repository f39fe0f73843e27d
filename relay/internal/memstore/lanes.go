package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// lane is a row of outbox_lanes, with the index of its events.
type lane struct {
	index
	owner, token outbox.ID // zero: nobody's
	leaseUntil   time.Duration
	floor        int64
	needs        []string
	crashCount   int
	markedEvent  outbox.ID
	markedToken  outbox.ID
	markedCount  int
}

// relay is a row of outbox_relays.
type relay struct {
	id            outbox.ID
	name, version string
	aliveUntil    time.Duration
	known         []string
}

func (l *lane) holds(token outbox.ID) bool {
	return l != nil && token != (outbox.ID{}) && l.token == token
}

// free tells that the lane is nobody's, or its lease has expired.
func (l *lane) free(now time.Duration) bool { return l.owner == (outbox.ID{}) || l.leaseUntil < now }

// progress takes in what a renewal says about the lane; the floor only if it is about this server.
func (l *lane) progress(renewal core.Renewal, about bool) {
	l.needs = slices.Clone(renewal.Needs)
	if about {
		l.floor = max(l.floor, renewal.Floor)
	}
	if renewal.Calm {
		l.crashCount = 0
	}
}

// holding returns the lane if this tenure still holds it, otherwise nil.
func (s *Store) holding(tenure core.Tenure) *lane {
	if lane := s.lane(tenure.Lane); lane.holds(tenure.Token) {
		return lane
	}
	return nil
}

// Heartbeat renews the relay and its lanes; a lane that has expired and that nobody took is renewed too.
func (s *Store) Heartbeat(_ context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	if err := s.write(); err != nil {
		return core.HeartbeatAnswer{}, err
	}
	now := s.now()
	s.enlist(relay{
		id: beat.Relay, name: beat.Name, version: beat.Version, aliveUntil: now + beat.Lease,
		known: slices.Clone(beat.KnownTypes),
	})
	answer := core.HeartbeatAnswer{Incarnation: s.incarnationName()}
	for _, renewal := range beat.Lanes {
		lane := s.holding(renewal.Tenure)
		if lane == nil {
			continue
		}
		lane.leaseUntil = now + beat.Lease
		lane.progress(renewal, s.about(beat.Incarnation))
		answer.Renewed = append(answer.Renewed, renewal.Lane)
	}
	for _, r := range s.relays {
		if r.aliveUntil >= now {
			answer.Relays = append(answer.Relays, core.Peer{ID: r.id, KnownTypes: slices.Clone(r.known)})
		}
	}
	answer.Lanes = make([]core.LaneView, len(s.lanes))
	for i := range s.lanes {
		lane := &s.lanes[i]
		answer.Lanes[i] = core.LaneView{
			Lane: int16(i), Owner: lane.owner, Free: lane.free(now), Needs: slices.Clone(lane.needs),
		}
	}
	answer.Pauses = slices.Clone(s.pauses)
	s.flush()
	return answer, nil
}

// about tells whether floors are about this server.
func (s *Store) about(incarnation string) bool {
	return incarnation == "" || incarnation == s.incarnationName()
}

// enlist writes the relay's row, in the order of the ids.
func (s *Store) enlist(r relay) {
	at, found := slices.BinarySearchFunc(s.relays, r.id, func(r relay, id outbox.ID) int {
		return slices.Compare(r.id[:], id[:])
	})
	if found {
		s.relays[at] = r
	} else {
		s.relays = slices.Insert(s.relays, at, r)
	}
}

// Acquire takes lanes in the order in which they are listed. An owner that let its lease expire has crashed.
func (s *Store) Acquire(_ context.Context, take core.Acquire) (core.AcquireAnswer, error) {
	if err := s.write(); err != nil {
		return core.AcquireAnswer{}, err
	}
	now := s.now()
	var taken []core.Acquired
	for _, number := range take.Lanes {
		lane := s.lane(number)
		if len(taken) >= take.Max {
			break
		}
		if lane == nil || !lane.free(now) {
			continue
		}
		crashed := lane.owner != outbox.ID{}
		// else it lost the lane, and did not die of it
		if crashed && !take.Away && !s.alive(lane.owner, lane.leaseUntil+take.Lease/3) {
			lane.crashCount++
			switch {
			case lane.markedEvent == (outbox.ID{}):
			case lane.markedToken == lane.token: // only an owner that marked it itself counts
				lane.markedCount++
			case lane.markedToken == (outbox.ID{}): // this one died of something else
				lane.markedCount = max(0, lane.markedCount-1)
			}
		}
		lane.owner, lane.token, lane.leaseUntil = take.Relay, take.Token, now+take.Lease
		taken = append(taken, core.Acquired{
			Lane: number, Floor: lane.floor, Crashed: crashed, CrashCount: lane.crashCount,
			NotedEvent: lane.markedEvent, NotedCount: lane.markedCount,
		})
	}
	if len(taken) > 0 {
		s.flush()
	}
	return core.AcquireAnswer{Lanes: taken, Incarnation: s.incarnationName()}, nil
}

// alive tells whether a relay's own row says so, and for longer than until the given time: a heartbeat that came just
// after the relay had taken a lane, and did not know of it yet, outlasts the lane's lease by a moment.
func (s *Store) alive(id outbox.ID, until time.Duration) bool {
	return slices.ContainsFunc(s.relays, func(r relay) bool { return r.id == id && r.aliveUntil > max(s.now(), until) })
}

// Release gives lanes back. Crashes before it still count: only calm ends them.
func (s *Store) Release(_ context.Context, give core.Release) error {
	if err := s.write(); err != nil {
		return err
	}
	for _, renewal := range give.Lanes {
		if lane := s.holding(renewal.Tenure); lane != nil {
			lane.progress(renewal, s.about(give.Incarnation))
			lane.release()
		}
	}
	for i := range s.lanes {
		if lane := &s.lanes[i]; slices.ContainsFunc(give.Tokens, lane.holds) {
			lane.release()
		}
	}
	s.flush()
	return nil
}

func (l *lane) release() {
	l.owner, l.token, l.leaseUntil = outbox.ID{}, outbox.ID{}, 0
}

// Note writes down which event is about to be sent alone.
func (s *Store) Note(_ context.Context, tenure core.Tenure, event outbox.ID, outlived bool) (bool, error) {
	if err := s.write(); err != nil {
		return false, err
	}
	lane := s.holding(tenure)
	if lane == nil {
		return false, nil
	}
	switch {
	case lane.markedCount == 0:
		lane.markedEvent, lane.markedToken = event, lane.token
	case outlived && lane.markedToken == lane.token:
		if lane.markedCount--; lane.markedCount == 0 {
			lane.markedEvent = event
		}
		lane.markedToken = outbox.ID{}
	case lane.markedEvent == event:
		lane.markedToken = lane.token
	default: // relays have died with another event: that one stays until it is settled, or enough has spoken for it
		lane.markedToken = outbox.ID{}
	}
	s.flush()
	return true, nil
}

// ExpireLane lets a lane's lease run out: what a model test does in place of letting time pass.
func (s *Store) ExpireLane(number int16) {
	if lane := s.lane(number); lane != nil && lane.owner != (outbox.ID{}) {
		lane.leaseUntil = s.now() - time.Second
	}
}

// ExpireRelay lets a relay count as dead.
func (s *Store) ExpireRelay(id outbox.ID) {
	for i := range s.relays {
		if s.relays[i].id == id {
			s.relays[i].aliveUntil = s.now() - time.Second
		}
	}
}
