package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Change is one change of an event's state, and what made it: "settle" or "unpark" with the token, or an
// operator's verb with the actor. Inserts are not changes.
type Change struct {
	ID       outbox.ID
	From, To core.State
	By       string
}

// EventRow is what can be seen of a row of outbox_events besides what its producer wrote.
type EventRow struct {
	ID        outbox.ID
	Lane      int16
	Seq       int64
	Type      string
	Aggregate core.Aggregate
	State     core.State
	Attempts  int32
	LastError string
	Due       time.Duration // of a retrying row, by the store's clock
}

// LetterRow is a row of outbox_dlq.
type LetterRow struct {
	ID       int64
	Event    outbox.ID
	Seq      int64
	Attempts int32
	Blocking bool
	Topic    string
	Reason   string
	Detail   string
	Payload  []byte
	Headers  []byte
	Next     uint64 // the Index of the next delivery when it was written
}

// Record is the letter as the checker of a run wants it.
func (l *LetterRow) Record() check.Letter {
	return check.Letter{
		ID: l.Event, Reason: l.Reason, Attempts: int(l.Attempts), Blocking: l.Blocking,
		Payload: check.SumOf(l.Payload), Headers: check.SumOf(l.Headers), Next: l.Next,
	}
}

// ActionRow is a row of outbox_actions.
type ActionRow struct {
	Action outbox.ID
	Verb   check.Verb
	Event  outbox.ID
	Letter int64 // 0: none
	Actor  string
	Reason string
	Target string // what was paused, resumed or limited, or whose requests were canceled; empty: it is about the event
	Next   uint64 // the Index of the next delivery when it was written
}

// Record is the action as the checker of a run wants it.
func (a *ActionRow) Record() check.Action {
	return check.Action{ID: a.Event, Verb: a.Verb, Actor: a.Actor, Next: a.Next}
}

// LaneRow is a row of outbox_lanes, with its row of outbox_markers.
type LaneRow struct {
	Lane         int16
	Owner, Token outbox.ID
	Floor, Swept int64
	Needs        []string
	Crashed      bool
	CrashCount   int
	MarkedEvent  outbox.ID
	MarkedCount  int
}

// RelayRow is a row of outbox_relays, with its newest beat.
type RelayRow struct {
	core.Owner
	Ended   bool
	Number  int64
	Expired bool
	Lanes   []core.Progress // as the beat told them
}

// TopicRow is how a topic stands at a relay.
type TopicRow struct {
	core.RouteStatus
	Relay outbox.ID
}

// Events returns the visible rows in the order of their numbers.
func (s *Store) Events() []EventRow {
	rows := make([]EventRow, 0, len(s.events))
	for _, r := range s.events {
		if !r.visible {
			continue
		}
		e := EventRow{
			ID: r.ID, Lane: r.Lane, Seq: r.Seq, Type: r.Type, Aggregate: r.Aggregate,
			State: r.State, Attempts: r.Attempts, LastError: r.lastError,
		}
		if r.State == core.Retrying {
			e.Due = r.due
		}
		rows = append(rows, e)
	}
	slices.SortFunc(rows, func(a, b EventRow) int { return cmp.Compare(a.Seq, b.Seq) })
	return rows
}

// Event returns one visible row, as a reader would.
func (s *Store) Event(id outbox.ID) (core.Event, bool) {
	r := s.events[id]
	if r == nil || !r.visible {
		return core.Event{}, false
	}
	return r.Event, true
}

// Open counts the rows in the states in which a relay still has something to do.
func (s *Store) Open() int {
	n := 0
	for i := range s.lanes {
		n += len(s.lanes[i].ready)
		for _, rows := range s.lanes[i].held {
			for _, r := range rows {
				if r.State != core.DeadBlocking {
					n++
				}
			}
		}
	}
	return n
}

// Lanes returns the lanes.
func (s *Store) Lanes() []LaneRow {
	rows := make([]LaneRow, len(s.lanes))
	for i := range s.lanes {
		l := &s.lanes[i]
		rows[i] = LaneRow{
			Lane: s.config.First + int16(i), Owner: l.owner, Token: l.token, Floor: l.floor, Swept: l.swept,
			Needs: slices.Clone(l.needs), Crashed: l.crashed,
			CrashCount: l.crashCount, MarkedEvent: l.marker.event, MarkedCount: l.marker.deaths,
		}
	}
	return rows
}

// Status returns the lanes with what their owners said last, as outbox_lane_status does.
func (s *Store) Status() []LaneRow {
	rows := s.Lanes()
	for _, r := range s.relays {
		for _, told := range r.beat.lanes {
			if row := &rows[told.Lane-s.config.First]; !r.ended && row.Owner == r.id {
				row.Floor, row.Needs = max(row.Floor, told.Floor), slices.Clone(told.Needs)
				if told.Calm {
					row.CrashCount = 0
				}
			}
		}
	}
	return rows
}

// Relays returns the relays, by id.
func (s *Store) Relays() []RelayRow {
	rows := make([]RelayRow, len(s.relays))
	for i := range s.relays {
		r := &s.relays[i]
		rows[i] = RelayRow{
			Owner: core.Owner{Relay: r.id, Token: r.token}, Ended: r.ended, Number: r.beat.number,
			Expired: r.beat.until < s.now(), Lanes: slices.Clone(r.beat.lanes),
		}
	}
	return rows
}

// Letters returns the dead letters, in the order in which they were written.
func (s *Store) Letters() []LetterRow { return slices.Clone(s.letters) }

// Actions returns what operators did, in the order in which they did it.
func (s *Store) Actions() []ActionRow { return slices.Clone(s.actions) }

// Pauses returns the pauses that stand, by scope and name.
func (s *Store) Pauses() []core.Pause { return slices.Clone(s.pauses) }

// Limits returns the limits that stand, by topic.
func (s *Store) Limits() []core.Limit { return slices.Clone(s.limits) }

// Topics returns how topics stand, by relay and topic.
func (s *Store) Topics() []TopicRow { return slices.Clone(s.topics) }

// Changes returns every change of a state since the last call, in order.
func (s *Store) Changes() []Change {
	changes := s.changes
	s.changes = nil
	return changes
}

// Dump returns the changes since the last call of Changes, the final rows, letters and actions, as the
// checker of a run wants them.
func (s *Store) Dump() check.History {
	var history check.History
	for _, c := range s.Changes() {
		history = append(history,
			check.Record{Change: &check.Change{ID: c.ID, From: check.State(c.From), To: check.State(c.To)}})
	}
	for _, r := range s.Events() {
		history = append(history, check.Record{Row: &check.Row{
			ID: r.ID, Seq: r.Seq, State: check.State(r.State), Type: r.Type, Attempts: int(r.Attempts),
			Published: r.State == core.Published,
		}})
	}
	for i := range s.letters {
		letter := s.letters[i].Record()
		history = append(history, check.Record{Letter: &letter})
	}
	for _, a := range s.actions {
		if a.Target != "" {
			continue
		}
		action := a.Record()
		history = append(history, check.Record{Action: &action})
	}
	for i := range s.requests {
		request := s.requests[i].Record()
		history = append(history, check.Record{Request: &request})
	}
	return history
}

// SaveRoutes replaces what is written down about the relay's topics, unless it is no more.
func (s *Store) SaveRoutes(_ context.Context, owner outbox.ID, statuses []core.RouteStatus) error {
	if err := s.write(); err != nil {
		return err
	}
	s.forgetTopics(owner)
	if !slices.ContainsFunc(s.relays, func(r relay) bool { return r.id == owner && !r.ended }) {
		return nil
	}
	for _, status := range statuses {
		s.topics = append(s.topics, TopicRow{Relay: owner, RouteStatus: status})
	}
	slices.SortFunc(s.topics, func(a, b TopicRow) int {
		return cmp.Or(slices.Compare(a.Relay[:], b.Relay[:]), cmp.Compare(a.Topic, b.Topic))
	})
	s.flush()
	return nil
}

func (s *Store) forgetTopics(relay outbox.ID) {
	s.topics = slices.DeleteFunc(s.topics, func(r TopicRow) bool { return r.Relay == relay })
}
