package check

import (
	"hash/maphash"
	"sync"
)

// Checker folds records as they come and keeps about a hundred bytes per event. It may be fed from many
// goroutines.
type Checker struct {
	mu      sync.Mutex
	verdict *Verdict
	seed    maphash.Seed

	index   map[ID]uint32 // into entries
	entries chunks
	groups  groups
	open    map[string][]uint32 // transactions without a certain end, and their events
	early   map[ID][]Record     // records that came before their event was known

	duplicates  []duplicate
	copies      map[int64]*copied
	publishing  publishing
	leases      map[leaseKey]*lease
	faults      []Fault
	charges     []charge
	deadRecords map[uint32]*deadRecord
	held        []heldRow
	end         *End
}

// New returns an empty checker.
func New() *Checker {
	return &Checker{
		verdict:     newVerdict(),
		seed:        maphash.MakeSeed(),
		index:       map[ID]uint32{},
		groups:      newGroups(),
		open:        map[string][]uint32{},
		early:       map[ID][]Record{},
		copies:      map[int64]*copied{},
		publishing:  newPublishing(),
		leases:      map[leaseKey]*lease{},
		deadRecords: map[uint32]*deadRecord{},
	}
}

// Add takes one record. What is wrong with it is counted, never returned. The record may be reused.
func (c *Checker) Add(r Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.fields() != 1 {
		c.malformedf("a record has %d kinds instead of one", r.fields())
		return
	}
	id, has := r.event()
	if !has {
		c.addGeneral(&r)
		return
	}
	at, known := c.index[id]
	if !known {
		c.early[id] = append(c.early[id], r.clone())
		return
	}
	c.addOfEvent(c.entries.at(at), &r)
}

// addGeneral takes a record that is not about one event.
func (c *Checker) addGeneral(r *Record) {
	switch {
	case r.Tx != nil:
		c.tx(r.Tx)
	case r.Fault != nil:
		c.fault(r.Fault)
	case r.Step != nil:
		c.laneStep(r.Step)
	case r.Held != nil:
		c.countf(RowWithoutHeld, ID{}, "outbox_held has lane %d, number %d, and no event has", r.Held.Lane, r.Held.Seq)
	case r.End != nil:
		if c.end != nil {
			c.malformedf("the history ends twice")
		}
		end := *r.End
		c.end = &end
	}
}

// addOfEvent takes a record about an event that a transaction has listed.
func (c *Checker) addOfEvent(e *entry, r *Record) {
	switch {
	case r.Delivery != nil:
		c.delivery(e, r.Delivery)
	case r.Effect != nil:
		c.effect(e, r.Effect)
	case r.Step != nil:
		c.eventStep(e, r.Step)
	case r.Change != nil:
		c.change(e, r.Change)
	case r.Row != nil:
		c.row(e, r.Row)
	case r.Held != nil:
		c.foldHeld(e, r.Held)
	case r.Letter != nil:
		c.letter(e, r.Letter)
	case r.Action != nil:
		c.action(e, r.Action)
	case r.Request != nil:
		c.request(e, r.Request)
	}
}

// clone copies what the record points to, for records that are kept.
func (r *Record) clone() Record {
	return Record{
		Delivery: cloned(r.Delivery), Effect: cloned(r.Effect), Step: cloned(r.Step), Change: cloned(r.Change),
		Row: cloned(r.Row), Held: cloned(r.Held), Letter: cloned(r.Letter), Action: cloned(r.Action),
		Request: cloned(r.Request),
	}
}

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// fault keeps a fault; there are thousands of them at most.
func (c *Checker) fault(f *Fault) {
	if f.Kind == "" {
		c.malformedf("a fault has no kind")
		return
	}
	c.verdict.Faults[f.Kind]++
	if f.Point != "" {
		c.verdict.Points[f.Point]++
	}
	c.faults = append(c.faults, *f)
}

// countf adds one to a counter and keeps the first examples.
func (c *Checker) countf(what Counter, id ID, format string, args ...any) {
	c.verdict.addf(what, id, format, args...)
}

// malformedf counts a record that cannot be used.
func (c *Checker) malformedf(format string, args ...any) { c.countf(Malformed, ID{}, format, args...) }

// sum returns the fingerprint under which a sum is kept.
func (c *Checker) sum(s Sum) uint64 { return maphash.Comparable(c.seed, s) }

// names returns the fingerprint of an event's type and key.
func (c *Checker) names(eventType, key string) uint64 {
	return maphash.Comparable(c.seed, [2]string{eventType, key})
}

// deadRecord returns what is known about the event's death, made on demand.
func (c *Checker) deadRecord(e *entry) *deadRecord {
	d := c.deadRecords[e.self]
	if d == nil {
		d = &deadRecord{}
		c.deadRecords[e.self] = d
	}
	return d
}
