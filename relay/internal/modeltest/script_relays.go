package modeltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// hold is a lane as it was acquired once.
type hold struct {
	core.Tenure
	owner core.Owner
}

// live are the relays that were not ended.
func (s *script) live() []memstore.RelayRow {
	return slices.DeleteFunc(s.model.mem.Relays(), func(r memstore.RelayRow) bool { return r.Ended })
}

// owner is a relay that is there, mostly, or one that was ended, or has another token, or never was.
func (s *script) owner(stalePercent int) core.Owner {
	live, all := s.live(), s.model.mem.Relays()
	switch {
	case !s.chance(stalePercent) && len(live) > 0:
		return pick(s, live).Owner
	case len(all) > 0 && s.chance(60):
		return pick(s, all).Owner
	case len(all) > 0 && s.chance(50):
		return core.Owner{Relay: pick(s, all).Relay, Token: s.newID(tokenID)}
	default:
		return core.Owner{Relay: s.newID(relayID), Token: s.newID(tokenID)}
	}
}

// asker is for whom a look is: often for nobody.
func (s *script) asker() core.Owner {
	if s.chance(40) {
		return core.Owner{}
	}
	return s.owner(15)
}

// held are the tenures that hold their lane now.
func (s *script) held() []hold {
	lanes := s.model.mem.Lanes()
	return slices.DeleteFunc(slices.Clone(s.holds), func(h hold) bool { return lanes[h.Lane-firstLane].Token != h.Token })
}

// tenure is one that holds its lane, mostly, or one that lost it, or one that never was.
func (s *script) tenure(stalePercent int) (hold, bool) {
	if s.chance(stalePercent) {
		if len(s.holds) > 0 && s.chance(80) {
			return pick(s, s.holds), true
		}
		return hold{Tenure: core.Tenure{Lane: pick(s, s.lanes), Token: s.newID(tokenID)}, owner: s.owner(30)}, true
	}
	held := s.held()
	if len(held) == 0 {
		return hold{}, false
	}
	return pick(s, held), true
}

// progresses are of some of the owner's lanes, and of some that are not, no lane twice.
func (s *script) progresses(owner core.Owner) (list []core.Progress) {
	for range s.rng.IntN(4) {
		h, ok := s.tenure(35)
		if !ok || h.owner != owner && s.chance(80) ||
			slices.ContainsFunc(list, func(p core.Progress) bool { return p.Lane == h.Lane }) {
			continue
		}
		progress := core.Progress{
			Tenure: h.Tenure, Floor: s.rng.Int64N(s.last + 1), Swept: s.rng.Int64N(s.last + 1), Calm: s.chance(30),
		}
		if s.chance(40) {
			progress.Needs = some(s, eventTypes, 1)
		}
		list = append(list, progress)
	}
	return list
}

// server is whom floors are about: mostly nobody asks, now and then one that is gone.
func (s *script) server() string {
	if s.chance(15) {
		return "gone"
	}
	return ""
}

// mostRelays is how many are there at a time.
const mostRelays = 3

func (s *script) register() *step {
	owner := core.Owner{Relay: s.newID(relayID), Token: s.newID(tokenID)}
	if len(s.live()) >= mostRelays {
		if !s.chance(10) {
			return nil
		}
		owner = s.owner(30) // its first answer was lost
	}
	if s.known[owner.Relay] == nil { // sent again, it says the same
		s.known[owner.Relay] = append([]string{}, some(s, eventTypes, 0)...)
		slices.Sort(s.known[owner.Relay])
	}
	who := &core.Registration{Name: "relay", Version: "1", Types: s.known[owner.Relay]}
	who.Topics = make([]string, len(who.Types))
	return s.beating(core.Heartbeat{Owner: owner, Register: who, Number: s.beatNumber(owner.Relay), Lease: time.Hour})
}

// beatNumber is the next of a relay, or one that was sent before that and was stuck.
func (s *script) beatNumber(relay outbox.ID) int64 {
	if stuck := s.stuck[relay]; len(stuck) > 0 && s.chance(40) {
		s.stuck[relay] = stuck[1:]
		return stuck[0]
	}
	s.beats[relay]++
	if s.chance(15) {
		s.stuck[relay] = append(s.stuck[relay], s.beats[relay])
		s.beats[relay]++
	}
	return s.beats[relay]
}

func (s *script) heartbeat() *step {
	owner := s.owner(20)
	beat := core.Heartbeat{Owner: owner, Lease: time.Hour, Incarnation: s.server()}
	if s.chance(70) {
		beat.Number, beat.Lanes = s.beatNumber(owner.Relay), s.progresses(owner)
		beat.Below = s.rng.Int64N(beat.Number)
	}
	if relays := s.model.mem.Relays(); len(relays) > 0 {
		for _, r := range some(s, relays, 0) {
			beat.Met = append(beat.Met, r.Relay)
		}
	}
	return s.beating(beat)
}

func (s *script) beating(beat core.Heartbeat) *step {
	step := queryStep(beat, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		answer, err := store.Heartbeat(ctx, beat)
		lines := []string{fmt.Sprintf("ended %v holds %v of %d lanes, requested %v", answer.Ended, answer.Held,
			len(answer.Lanes), answer.Requested)}
		for _, peer := range answer.Relays {
			lines = append(lines, fmt.Sprintf("peer %s expired %v told %v knows %v", peer.ID, peer.Expired,
				peer.KnownTypes != nil, peer.KnownTypes))
		}
		for _, view := range answer.Lanes {
			if view.Owner != (outbox.ID{}) || len(view.Needs) > 0 {
				lines = append(lines, fmt.Sprintf("lane %d owner %s needs %v", view.Lane, view.Owner,
					slices.Sorted(slices.Values(view.Needs))))
			}
		}
		for _, p := range answer.Pauses {
			lines = append(lines, fmt.Sprintf("pause %s %q actor %q reason %q", p.Scope, p.Name, p.Actor, p.Reason))
		}
		for _, l := range answer.Limits {
			lines = append(lines, fmt.Sprintf("limit %q %v actor %q reason %q", l.Topic, l.Rate, l.Actor, l.Reason))
		}
		return lines, err
	})
	step.learn = func(answer []string) {
		if slices.ContainsFunc(answer, func(line string) bool { return strings.HasPrefix(line, "pause ") }) {
			s.saw["heartbeats_of_a_pause"]++
		}
		if slices.ContainsFunc(answer, func(line string) bool { return strings.HasPrefix(line, "limit ") }) {
			s.saw["heartbeats_of_a_limit"]++
		}
		if strings.HasSuffix(answer[0], "requested true") {
			s.saw["heartbeats_of_a_request"]++
		}
		if strings.HasPrefix(answer[0], "ended true") {
			s.saw["beats_too_late"]++
		}
	}
	return step
}

func (s *script) acquire() *step {
	if len(s.live()) == 0 && !s.chance(5) {
		return s.register()
	}
	take := core.Acquire{
		Owner: s.owner(15), Tenure: s.newID(tokenID), Lanes: some(s, s.lanes, 1), Max: 1 + s.rng.IntN(4),
	}
	for _, lane := range s.model.mem.Lanes() { // what was freed by an end is what relays look for
		if lane.Crashed && lane.Owner == (outbox.ID{}) && !slices.Contains(take.Lanes, lane.Lane) && s.chance(80) {
			take.Lanes = append(take.Lanes, lane.Lane)
		}
	}
	step := queryStep(take, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		taken, err := store.Acquire(ctx, take)
		var lines []string
		for _, a := range taken.Lanes {
			lines = append(lines, fmt.Sprintf("%+v", a))
		}
		return lines, err
	})
	step.learn = func([]string) {
		for _, lane := range s.model.mem.Lanes() {
			if lane.Token != take.Tenure {
				continue
			}
			s.holds = append(s.holds, hold{Tenure: core.Tenure{Lane: lane.Lane, Token: take.Tenure}, owner: take.Owner})
			s.saw["acquired"]++
			if lane.CrashCount > 0 {
				s.saw["taken_over"]++
			}
			if lane.MarkedCount > 0 {
				s.saw["taken_over_with_note"]++
			}
		}
	}
	return step
}

func (s *script) release() *step {
	give := core.Release{Owner: s.owner(15), Incarnation: s.server(), End: s.chance(15)}
	give.Lanes = s.progresses(give.Owner)
	if h, ok := s.tenure(30); ok && s.chance(50) {
		give.Tokens = []outbox.ID{h.Token}
	}
	return writeStep(give, func(ctx context.Context, store core.Store) error { return store.Release(ctx, give) })
}

func (s *script) expireRelay() *step {
	live := s.live()
	if len(live) == 0 {
		return nil
	}
	relay := pick(s, live).Relay
	lanes := s.model.mem.Lanes() // a note matters when its owner dies
	if marked := slices.DeleteFunc(s.held(), func(h hold) bool {
		return lanes[h.Lane-firstLane].MarkedEvent == outbox.ID{}
	}); len(marked) > 0 && s.chance(70) {
		relay = pick(s, marked).owner.Relay
	}
	if s.chance(70) {
		s.planned = append(s.planned, s.endExpired)
	}
	return s.expiring(relay)
}

func (s *script) expiring(relay outbox.ID) *step {
	return &step{kind: "expire_relay", what: relay, do: func(ctx context.Context, side side) ([]string, error) {
		return nil, side.expireRelay(ctx, relay)
	}}
}

func (s *script) endExpired() *step {
	end := core.EndExpired{Max: 1 + s.rng.IntN(3), Away: s.chance(20)}
	if s.chance(50) {
		end.Relay = s.owner(20).Relay
	}
	step := queryStep(end, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		ended, err := store.EndExpired(ctx, end)
		return []string{fmt.Sprintf("ended %v", ended)}, err
	})
	step.kind = "end_expired"
	step.learn = func(answer []string) {
		if answer[0] != "ended []" {
			s.saw["ended"]++
		}
	}
	return step
}

func (s *script) note() *step {
	h, ok := s.tenure(20)
	if !ok {
		return nil
	}
	note := core.Note{Owner: h.owner, Tenure: h.Tenure, Event: newID(eventID, 1+s.rng.IntN(2))}
	switch {
	case s.chance(30): // it is not being sent any more
		note.Event, note.Outlived = outbox.ID{}, s.chance(70)
	case s.chance(40): // its owner dies of it, and somebody takes over
		s.planned = append(s.planned, func() *step { return s.expiring(h.owner.Relay) }, s.endExpired, func() *step {
			step := s.acquire()
			if step != nil {
				step.kind = "acquire"
			}
			return step
		})
	}
	return queryStep(note, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		held, err := store.Note(ctx, note)
		return []string{fmt.Sprint(held)}, err
	})
}
