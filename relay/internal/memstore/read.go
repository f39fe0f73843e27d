package memstore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// seqLogVals is how far a standby's copy of the sequence runs ahead: PostgreSQL logs the sequence in
// steps of this many numbers.
const seqLogVals = 32

// FenceHalf is a fence of which only the sequence has been read.
type FenceHalf struct {
	store  *Store
	server server
	fence  core.Fence
}

// FenceBegin reads the value of the sequence: the first statement of a fence.
func (s *Store) FenceBegin() FenceHalf {
	half := FenceHalf{store: s, server: s.server}
	half.fence = core.Fence{Last: s.last, Standby: s.standby, Incarnation: s.incarnationName()}
	if s.standby {
		half.fence.Last += seqLogVals
	}
	return half
}

// End lists the writers and makes the value durable. It fails if the server was restarted in between.
func (h FenceHalf) End() (core.Fence, error) {
	s, fence := h.store, h.fence
	if s.server != h.server {
		return core.Fence{}, errors.New("memstore: the connection is lost")
	}
	if fence.Standby {
		return fence, nil
	}
	for _, tx := range s.open {
		if tx.drawn {
			fence.Writers = append(fence.Writers, tx.Writer())
		}
	}
	slices.SortFunc(fence.Writers, func(a, b core.Writer) int { return cmp.Compare(a.VXID, b.VXID) })
	s.flush()
	return fence, nil
}

// Fence is both halves with nothing in between.
func (s *Store) Fence(context.Context) (core.Fence, error) { return s.FenceBegin().End() }

// gone tells whether a transaction has ended: pg_visible_in_snapshot.
func (s *Store) gone(xid uint64) bool {
	if xid >= s.nextXID {
		return false
	}
	return !slices.ContainsFunc(s.open, func(tx *Tx) bool { return tx.xid == xid })
}

// Read reads ready rows, in the order of the lanes asked for.
func (s *Store) Read(_ context.Context, read core.Read) (core.ReadAnswer, error) {
	var lanes []int16 // all of them, also those that MaxBytes keeps from being read
	for _, query := range read.Lanes {
		lanes = append(lanes, query.Lane)
	}
	answer := core.ReadAnswer{Seen: s.seen(read.Owner, lanes...)}
	low := int64(math.MaxInt64)
	for _, w := range read.Writers {
		if s.gone(w.XID) {
			answer.Gone = append(answer.Gone, w.XID)
			low = min(low, w.Low)
		}
	}
	bytes := 0
	for _, query := range read.Lanes {
		lane := s.shown(read.Owner, query.Lane)
		if lane == nil {
			continue
		}
		for _, r := range lane.unread(query, max(query.W, min(query.C, low)), &read) {
			answer.Events = append(answer.Events, r.Event)
			if bytes += r.Bytes(); bytes >= read.MaxBytes {
				answer.Stopped = true
				return answer, nil
			}
		}
	}
	return answer, nil
}

// unread are the ready rows above the bound that a read asks for.
func (l *lane) unread(query core.LaneRead, bound int64, read *core.Read) []*row {
	rows := above(l.ready, bound)
	if query.Window > 0 {
		rows = rows[:len(rows)-len(above(rows, bound+query.Window))]
	}
	if len(read.Exclude) == 0 {
		return rows[:min(len(rows), max(query.Limit, 0))]
	}
	var wanted []*row
	for _, r := range rows {
		if len(wanted) >= query.Limit {
			break
		}
		if !slices.Contains(read.Exclude, r.Type) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}

// Sweep lists ready rows at or below the floors, lane by lane.
func (s *Store) Sweep(_ context.Context, sweep core.Sweep) (core.SweepAnswer, error) {
	var found []core.Floor
	var lanes []int16
	for _, floor := range sweep.Floors {
		lanes = append(lanes, floor.Lane)
		lane := s.shown(sweep.Owner, floor.Lane)
		if lane == nil {
			continue
		}
		for _, r := range lane.ready {
			if r.Seq > floor.Seq || len(found) >= sweep.Limit {
				break
			}
			if r.Seq <= floor.Above {
				continue
			}
			found = append(found, core.Floor{Lane: floor.Lane, Seq: r.Seq})
		}
	}
	return core.SweepAnswer{Seen: s.seen(sweep.Owner, lanes...), Found: found}, nil
}
