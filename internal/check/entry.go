package check

// entry is all that is kept of every event. There are millions, so it has no pointers and no strings.
type entry struct {
	id      ID
	payload uint64 // fingerprints of what was emitted
	headers uint64
	names   uint64
	version uint64
	first   uint64 // Index of the first delivery that nobody requested; 0: none
	self    uint32 // its own place
	group   uint32
	doubts  uint16 // transactions with this event that have no certain end
	flags   uint16
	// failures is how many publishes failed in a way that may be charged, attempts what the row says.
	failures uint16
	attempts uint16
	state    State // in the final table
	kind     State // in outbox_held; Absent: it has no row there
}

// What is known about an entry.
const (
	committed uint16 = 1 << iota
	delivered        // including by request
	hasRow
	hasEffect
	hasLetter
	settledPublished
	chargedWrongly
	seqHeld // its row is in Checker.held
	undone  // its commit was durable, and was taken back
)

func (e *entry) is(flag uint16) bool { return e.flags&flag != 0 }
func (e *entry) set(flag uint16)     { e.flags |= flag }

// chunkSize is a compromise between the cost of a small history and that of growing a large one.
const chunkSize = 1 << 8

// chunks is a slice that grows without copying, which would need half as much memory again.
type chunks struct {
	list [][]entry
	n    uint32
}

func (s *chunks) at(i uint32) *entry { return &s.list[i/chunkSize][i%chunkSize] }

func (s *chunks) add() *entry {
	if s.n%chunkSize == 0 {
		s.list = append(s.list, make([]entry, chunkSize))
	}
	e := s.at(s.n)
	e.self, e.state, e.kind = s.n, Absent, Absent
	s.n++
	return e
}

// all yields every entry in the order of arrival of its transaction.
func (s *chunks) all(yield func(*entry) bool) {
	for i := range s.n {
		if !yield(s.at(i)) {
			return
		}
	}
}

// group is an aggregate on a topic, by number.
type group struct {
	aggregate uint32
	topic     uint32
}

// groups numbers aggregates, topics and their pairs, so that each name is kept once.
type groups struct {
	aggregates map[string]uint32
	topics     map[string]uint32
	names      []string // of topics
	pairs      map[group]uint32
	list       []group
}

func newGroups() groups {
	return groups{aggregates: map[string]uint32{}, topics: map[string]uint32{}, pairs: map[group]uint32{}}
}

func (g *groups) number(aggregate, topic string) uint32 {
	a, known := g.aggregates[aggregate]
	if !known {
		a = uint32(len(g.aggregates))
		g.aggregates[aggregate] = a
	}
	t, known := g.topics[topic]
	if !known {
		t = uint32(len(g.topics))
		g.topics[topic] = t
		g.names = append(g.names, topic)
	}
	pair := group{a, t}
	n, known := g.pairs[pair]
	if !known {
		n = uint32(len(g.list))
		g.pairs[pair] = n
		g.list = append(g.list, pair)
	}
	return n
}

func (g *groups) topic(n uint32) string { return g.names[g.list[n].topic] }
