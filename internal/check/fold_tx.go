package check

import (
	"maps"
	"slices"
)

// tx folds one record of a transaction: its beginning, its end, or both.
func (c *Checker) tx(t *Tx) {
	switch t.Outcome {
	case Begun, OK, Failed, Unknown, Undone:
	default:
		c.malformedf("transaction %q has an unknown outcome", t.Key)
		return
	}
	events, begun := c.open[t.Key]
	switch {
	case t.Key == "":
		c.malformedf("a transaction has no key")
		return
	case begun && (len(t.Events) > 0 || t.Outcome == Begun):
		c.malformedf("transaction %q begins twice", t.Key)
		return
	case !begun && len(t.Events) == 0 && t.Outcome != Begun:
		c.malformedf("transaction %q ends without having begun, or ends twice", t.Key)
		return
	case !begun:
		events = c.begin(t.Events)
		c.open[t.Key] = events
	}
	if t.Outcome == OK || t.Outcome == Failed || t.Outcome == Undone {
		c.decide(t.Key, events, t.Outcome)
	}
}

// begin lists the events of a transaction that may or may not commit.
func (c *Checker) begin(events []Event) []uint32 {
	list := make([]uint32, 0, len(events))
	for i := range events {
		list = append(list, c.emitted(&events[i]))
	}
	return list
}

// emitted finds or makes the entry of an event. An id may come again after a rollback, or after an outcome
// that nobody knows: then it is one event, and must have one content.
func (c *Checker) emitted(ev *Event) uint32 {
	at, known := c.index[ev.ID]
	var e *entry
	if known {
		e = c.entries.at(at)
	} else {
		e = c.entries.add()
		e.id = ev.ID
		at = e.self
		c.index[ev.ID] = at
	}
	made := entry{
		payload: c.sum(ev.Payload), headers: c.sum(ev.Headers), names: c.names(ev.Type, ev.Key),
		version: ev.Version, group: c.groups.number(ev.Aggregate, ev.Topic),
	}
	same := e.payload == made.payload && e.headers == made.headers && e.names == made.names && e.version == made.version &&
		e.group == made.group
	if known && !same && (e.doubts > 0 || e.is(committed)) {
		c.malformedf("two transactions wrote event %s with different content", ev.ID)
	}
	if !e.is(committed) {
		e.payload, e.headers, e.names, e.version, e.group = made.payload, made.headers, made.names, made.version, made.group
	}
	e.doubts++
	if !known {
		c.replay(e)
	}
	return at
}

// replay takes the records that came before their event was known.
func (c *Checker) replay(e *entry) {
	if len(c.early) == 0 {
		return
	}
	records := c.early[e.id]
	delete(c.early, e.id)
	for i := range records {
		c.addOfEvent(e, &records[i])
	}
}

// decide ends a transaction for good.
func (c *Checker) decide(key string, events []uint32, outcome Outcome) {
	delete(c.open, key)
	for _, at := range events {
		e := c.entries.at(at)
		e.doubts--
		switch outcome {
		case OK:
			e.set(committed)
		case Undone:
			e.set(undone)
		default: // nothing was committed
		}
	}
}

// Unresolved returns the keys of the transactions that have begun and may or may not have committed.
// Whoever can read the business row adds a Tx with the key and OK or Failed for each.
func (c *Checker) Unresolved() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.open))
}
