package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

func compareAggregates(a, b core.Aggregate) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
}

// dueIn is how long a retrying row has to wait still.
func (s *Store) dueIn(r *row) time.Duration {
	if r.State != core.Retrying {
		return 0
	}
	return r.due - s.now()
}

func (s *Store) heldKey(r *row) core.HeldKey {
	return core.HeldKey{Lane: r.Lane, Aggregate: r.Aggregate, EventType: r.Type, State: r.State, DueIn: s.dueIn(r)}
}

// HeldKeys lists the first held row of each aggregate and event type, by lane and aggregate.
func (s *Store) HeldKeys(_ context.Context, held core.HeldKeys) (core.KeysAnswer, error) {
	var keys []core.HeldKey
	var lanes []int16
	for _, query := range held.Lanes {
		lanes = append(lanes, query.Lane)
		lane := s.shown(held.Owner, query.Lane)
		if lane == nil || len(lane.held) == 0 {
			continue
		}
		first := len(keys)
		for _, rows := range lane.held {
			keys = s.firstOfTypes(keys, rows)
		}
		behind := slices.DeleteFunc(keys[first:], func(k core.HeldKey) bool {
			return query.After != core.HeldLine{} && compareLines(lineOf(k), query.After) <= 0
		})
		keys = keys[:first+len(behind)]
		slices.SortFunc(keys[first:], func(a, b core.HeldKey) int { return compareLines(lineOf(a), lineOf(b)) })
	}
	if held.Limit > 0 {
		keys = keys[:min(len(keys), held.Limit)]
	}
	return core.KeysAnswer{Seen: s.seen(held.Owner, lanes...), Keys: keys}, nil
}

func lineOf(key core.HeldKey) core.HeldLine {
	return core.HeldLine{Aggregate: key.Aggregate, EventType: key.EventType}
}

func compareLines(a, b core.HeldLine) int {
	return cmp.Or(compareAggregates(a.Aggregate, b.Aggregate), cmp.Compare(a.EventType, b.EventType))
}

// firstOfTypes appends the first of the rows for each event type among them.
func (s *Store) firstOfTypes(keys []core.HeldKey, rows []*row) []core.HeldKey {
	first := len(keys)
	for _, r := range rows {
		if !slices.ContainsFunc(keys[first:], func(k core.HeldKey) bool { return k.EventType == r.Type }) {
			keys = append(keys, s.heldKey(r))
		}
	}
	return keys
}

// DueKeys lists retrying rows that are due, those first that became due last.
func (s *Store) DueKeys(_ context.Context, due core.DueKeys) (core.KeysAnswer, error) {
	now := s.now()
	var keys []core.HeldKey
	var lanes []int16
	for _, query := range due.Lanes {
		lanes = append(lanes, query.Lane)
		lane := s.shown(due.Owner, query.Lane)
		if lane == nil {
			continue
		}
		taken := 0
		for _, r := range slices.Backward(lane.due) {
			if taken >= due.Limit {
				break
			}
			place := core.HeldPlace{At: s.config.Epoch.Add(r.due), Seq: r.Seq}
			if r.due > now || slices.Contains(due.Exclude, r.Type) || !isAfter(place, query.After) {
				continue
			}
			key := s.heldKey(r)
			key.Place = place
			keys = append(keys, key)
			taken++
		}
	}
	return core.KeysAnswer{Seen: s.seen(due.Owner, lanes...), Keys: keys}, nil
}

// isAfter tells whether a place comes later than another in a look for what is due.
func isAfter(place, after core.HeldPlace) bool {
	return after == core.HeldPlace{} || cmp.Or(place.At.Compare(after.At), cmp.Compare(place.Seq, after.Seq)) < 0
}

// HeldRows reads held rows of aggregates. Only those that may be published now bring their payload.
func (s *Store) HeldRows(_ context.Context, held core.HeldRows) (core.RowsAnswer, error) {
	var events []core.Event
	var lanes []int16
	for _, a := range held.Asks {
		lanes = append(lanes, a.Lane)
		lane := s.shown(held.Owner, a.Lane)
		if lane == nil {
			continue
		}
		taken := 0
		for _, r := range lane.held[a.Aggregate] {
			if taken >= held.Limit {
				break
			}
			if !slices.Contains(a.Types, r.Type) {
				continue
			}
			events = append(events, s.heldEvent(r))
			taken++
		}
	}
	return core.RowsAnswer{Seen: s.seen(held.Owner, lanes...), Events: events}, nil
}

func (s *Store) heldEvent(r *row) core.Event {
	event := r.Event
	event.DueIn = s.dueIn(r)
	if r.State == core.Parked || r.State == core.DeadBlocking {
		event.Payload, event.Headers = nil, nil
	}
	return event
}

// OldParked lists rows that were parked so long ago.
func (s *Store) OldParked(_ context.Context, old core.OldParked) (core.ParkedAnswer, error) {
	var answer core.ParkedAnswer
	answer.Seen, answer.Page = s.lookAtParked(old.Owner, old.Lanes, old.Limit, func(owner core.Owner, lane int16) *lane {
		return s.shown(owner, lane)
	}, func(r *row) bool {
		if r.due > s.now()-old.Age {
			return false
		}
		if !slices.Contains(old.Exclude, r.Type) {
			answer.Events = append(answer.Events, s.heldEvent(r))
		}
		return true
	})
	return answer, nil
}

// lookAtParked calls look for the parked rows of lanes that come behind their places, until the limit; false ends the
// lane.
func (s *Store) lookAtParked(owner core.Owner, from []core.LaneFrom, limit int,
	laneOf func(core.Owner, int16) *lane, look func(*row) bool,
) (seen core.Seen, page core.Page) {
	var lanes []int16
	for _, query := range from {
		lanes = append(lanes, query.Lane)
	}
	seen = s.seen(owner, lanes...)
	for _, query := range from {
		lane := laneOf(owner, query.Lane)
		if lane == nil {
			continue
		}
		for _, r := range slices.Clone(lane.parked) {
			place := core.HeldPlace{At: s.config.Epoch.Add(r.due), Seq: r.Seq}
			if query.After != (core.HeldPlace{}) && !isAfter(query.After, place) {
				continue
			}
			if limit > 0 && page.Looked >= limit {
				return seen, page
			}
			if !look(r) {
				break
			}
			page = core.Page{Looked: page.Looked + 1, Lane: query.Lane, End: place}
		}
	}
	return seen, page
}
