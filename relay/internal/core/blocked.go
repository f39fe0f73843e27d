package core

import (
	"hash/maphash"
)

// blocked are the lines of a lane that stand behind a dead or parked event, and with which nothing is going on. There
// may be millions of them, and a hold is some hundred bytes: so each is a number and a type here, and becomes a hold
// again when something comes that belongs to it.
type blocked struct {
	lines map[lineHash]int32 // the type of the event in front, by its number in [names]
	types map[int32]int      // how many lines there are of each
}

// lineHash stands for a line. Of two with the same hash one would be forgotten with the other, and be overtaken: it has
// enough bits for that never to happen.
type lineHash [2]uint64

// names numbers the types that were met.
type names struct {
	number map[string]int32
	name   []string
	seeds  [2]maphash.Seed
}

func newNames() names {
	return names{number: map[string]int32{}, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

func (n *names) of(eventType string) int32 {
	number, known := n.number[eventType]
	if !known {
		number = int32(len(n.name))
		n.number[eventType], n.name = number, append(n.name, eventType)
	}
	return number
}

func (n *names) hash(key lineKey) lineHash {
	return lineHash{maphash.Comparable(n.seeds[0], key), maphash.Comparable(n.seeds[1], key)}
}

// block writes down that a line stands behind an event of this type.
func (c *Core) block(l *lane, key lineKey, eventType string) {
	if l.blocked.lines == nil {
		l.blocked = blocked{lines: map[lineHash]int32{}, types: map[int32]int{}}
	}
	number := c.names.of(eventType)
	l.blocked.lines[c.names.hash(key)] = number
	l.blocked.types[number]++
}

// isBlocked tells whether a line is among them.
func (c *Core) isBlocked(l *lane, key lineKey) bool {
	if len(l.blocked.lines) == 0 {
		return false
	}
	_, is := l.blocked.lines[c.names.hash(key)]
	return is
}

// unblock takes a line out, and answers the type in front of it; empty: it was not there.
func (c *Core) unblock(l *lane, key lineKey) (eventType string) {
	if len(l.blocked.lines) == 0 {
		return ""
	}
	hash := c.names.hash(key)
	number, is := l.blocked.lines[hash]
	if !is {
		return ""
	}
	delete(l.blocked.lines, hash)
	if l.blocked.types[number]--; l.blocked.types[number] == 0 {
		delete(l.blocked.types, number)
	}
	return c.names.name[number]
}

// blockedTypes lists the types that lines of the lane stand behind.
func (c *Core) blockedTypes(l *lane) []string {
	types := make([]string, 0, len(l.blocked.types))
	for number := range l.blocked.types {
		types = append(types, c.names.name[number])
	}
	return types
}

// blockHolds makes blocked lines of holds that have stood behind a dead or parked event for a while.
func (c *Core) blockHolds() {
	for _, l := range c.sorted {
		for key, h := range l.holds {
			if h.rests && h.due == never && !h.queued && !h.asking && !h.stale && h.changes == 0 && len(h.types) == 1 &&
				c.lines[key] == nil && c.now-h.lookedAt > c.config.HeldPeriod {
				delete(l.holds, key)
				c.block(l, key, h.types[0])
			}
		}
	}
}
