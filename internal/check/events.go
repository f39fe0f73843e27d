package check

import (
	"bytes"
	"maps"
	"math"
	"slices"
)

// heldRow is a row that was not finished when the run ended.
type heldRow struct {
	entry   uint32
	seq     int64
	unknown string // the row's type
}

// row folds a row of the final table.
func (c *Checker) row(e *entry, r *Row) {
	if e.is(hasRow) {
		c.malformedf("the row of %s is listed twice", e.id)
		return
	}
	if r.State >= Absent || r.Attempts < 0 {
		c.malformedf("the row of %s has an impossible state or attempt count", e.id)
		return
	}
	e.set(hasRow)
	e.state = r.State
	e.attempts = uint16(min(r.Attempts, math.MaxUint16))
	if r.Published != (r.State == Published) {
		c.countf(IllegalTransitions, e.id, "is %s, and published_at says otherwise", r.State)
	}
	if r.State.open() || r.State == DeadBlocking {
		c.held = append(c.held, heldRow{e.self, r.Seq, r.Type})
	}
}

func (c *Checker) drained() bool { return c.end != nil && c.end.Drained }

// checkEvents finds out what became of every event.
func (c *Checker) checkEvents() {
	excused := c.excused()
	for e := range c.entries.all {
		switch {
		case e.is(committed):
			c.verdict.counts[Committed]++
			c.checkCommitted(e, excused[e.self])
		case e.is(undone): // it may have been delivered before, and need not be
			c.verdict.counts[TakenBack]++
			if e.is(hasRow) {
				c.countf(Phantom, e.id, "has a row, and its transaction was taken back")
			}
		case e.doubts == 0 && e.is(delivered|hasRow|hasEffect|hasLetter):
			c.countf(Phantom, e.id, "exists, and its transaction did not commit")
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.early), func(a, b ID) int { return bytes.Compare(a[:], b[:]) }) {
		if slices.ContainsFunc(c.early[id], func(r Record) bool { return r.exists() }) {
			c.countf(Phantom, id, "exists, and no transaction wrote it")
			continue
		}
		c.malformedf("event %s was never emitted, and relays or operators know it", id)
	}
	for _, key := range slices.Sorted(maps.Keys(c.open)) {
		c.countf(Unresolved, ID{}, "nobody knows whether transaction %q committed", key)
	}
}

// checkCommitted puts a committed event under exactly one of the counters of S1, and looks at its row.
func (c *Checker) checkCommitted(e *entry, excused bool) {
	d := c.deadRecords[e.self]
	stillOpen := e.is(hasRow) && e.state.open()
	switch {
	case e.is(delivered):
		c.verdict.counts[DeliveredDistinct]++
		if c.end != nil && c.end.Effects && !e.is(hasEffect) {
			c.countf(EffectsMissing, e.id, "was delivered and took no effect")
		}
	case stillOpen && !c.drained():
		c.verdict.counts[Pending]++
	case stillOpen: // below
	case e.state.dead() && e.is(hasLetter), !c.dumped() && e.is(hasLetter):
		c.verdict.counts[DeadLettered]++
	case d != nil && d.discards > 0 && (e.state == Discarded || c.retention() && !e.is(hasRow)):
		c.verdict.counts[DiscardedByName]++
	default:
		c.countf(Lost, e.id, "was committed, and is %s without a delivery", e.state)
	}
	switch {
	case !stillOpen || !c.drained():
	case excused:
		c.verdict.counts[HeldExplained]++
	default:
		c.countf(Stuck, e.id, "is still %s", e.state)
	}
	if e.is(delivered) && !e.is(hasRow) && c.dumped() && !c.retention() {
		c.countf(IllegalTransitions, e.id, "has no row any more, and nothing was allowed to delete it")
	}
}

func (c *Checker) dumped() bool    { return c.end != nil && c.end.Dumped }
func (c *Checker) retention() bool { return c.end != nil && c.end.Retention }

// excused finds the rows that may wait: of a type that nobody knows, or waiting or retrying behind such a row of
// the aggregate, or behind a dead one that blocks the aggregate on the same topic.
func (c *Checker) excused() map[uint32]bool {
	excused := map[uint32]bool{}
	parked, blocked := map[uint32]int64{}, map[uint32]int64{} // lowest seq, by aggregate and by group
	for _, h := range c.held {
		e := c.entries.at(h.entry)
		switch {
		case e.state == DeadBlocking:
			lower(blocked, e.group, h.seq)
		// Also one that an operator has released or redriven: it is parked again.
		case e.state == Parked && c.end != nil && slices.Contains(c.end.UnknownTypes, h.unknown):
			excused[e.self] = true
			lower(parked, c.groups.list[e.group].aggregate, h.seq)
		}
	}
	for _, h := range c.held {
		e := c.entries.at(h.entry)
		if e.state != Waiting && e.state != Retrying { // a retry waits for its turn as well
			continue
		}
		head, behindParked := parked[c.groups.list[e.group].aggregate]
		dead, behindDead := blocked[e.group]
		if behindParked && head < h.seq || behindDead && dead < h.seq {
			excused[e.self] = true
		}
	}
	return excused
}

// lower keeps the lowest number.
func lower(of map[uint32]int64, key uint32, seq int64) {
	if known, is := of[key]; !is || seq < known {
		of[key] = seq
	}
}
