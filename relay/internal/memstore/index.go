package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// row is a row of outbox_events, with its row of outbox_held.
type row struct {
	core.Event
	visible   bool          // its transaction has committed
	due       time.Duration // when a retrying row is due; since when another is what it is
	lastError string
}

// index is the rows of a lane as the indexes have them.
type index struct {
	ready  []*row                    // by number
	parked []*row                    // by time and number
	due    []*row                    // those that are retrying, by time and number
	held   map[core.Aggregate][]*row // by number
}

func held(state core.State) bool { return state >= core.Retrying && state <= core.DeadBlocking }

func bySeq(a, b *row) int { return cmp.Compare(a.Seq, b.Seq) }

func byDue(a, b *row) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Seq, b.Seq)) }

// addToIndex enters a visible row into the index of its state.
func (s *Store) addToIndex(r *row) {
	index := &s.lane(r.Lane).index
	switch r.State {
	case core.Ready:
		index.ready = insert(index.ready, r, bySeq)
	case core.Parked:
		index.parked = insert(index.parked, r, byDue)
	case core.Retrying:
		index.due = insert(index.due, r, byDue)
	default: // in no index of one state
	}
	if held(r.State) {
		if index.held == nil {
			index.held = make(map[core.Aggregate][]*row)
		}
		index.held[r.Aggregate] = insert(index.held[r.Aggregate], r, bySeq)
	}
}

// removeFromIndex takes it out again, before its state or its time changes.
func (s *Store) removeFromIndex(r *row) {
	index := &s.lane(r.Lane).index
	switch r.State {
	case core.Ready:
		index.ready = remove(index.ready, r, bySeq)
	case core.Parked:
		index.parked = remove(index.parked, r, byDue)
	case core.Retrying:
		index.due = remove(index.due, r, byDue)
	default: // in no index of one state
	}
	if held(r.State) {
		rows := remove(index.held[r.Aggregate], r, bySeq)
		if len(rows) == 0 {
			delete(index.held, r.Aggregate)
		} else {
			index.held[r.Aggregate] = rows
		}
	}
}

func insert(rows []*row, r *row, order func(a, b *row) int) []*row {
	if n := len(rows); n == 0 || order(rows[n-1], r) < 0 { // most come at the end
		return append(rows, r)
	}
	at, _ := slices.BinarySearchFunc(rows, r, order)
	return slices.Insert(rows, at, r)
}

// remove shifts the shorter side: queues are mostly emptied from the front.
func remove(rows []*row, r *row, order func(a, b *row) int) []*row {
	at, found := slices.BinarySearchFunc(rows, r, order)
	if !found {
		return rows
	}
	if at < len(rows)/2 {
		copy(rows[1:at+1], rows[:at])
		rows[0] = nil
		return rows[1:]
	}
	return slices.Delete(rows, at, at+1)
}

// above returns the rows with higher numbers.
func above(rows []*row, seq int64) []*row {
	at, found := slices.BinarySearchFunc(rows, seq, func(r *row, seq int64) int { return cmp.Compare(r.Seq, seq) })
	if found {
		at++
	}
	return rows[at:]
}
