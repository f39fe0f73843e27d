package leaks

import (
	"slices"
	"sync"
)

// Kind is a kind of place.
type Kind string

// The kinds.
const (
	Log     Kind = "log"     // of a publisher, JSON and text, from the level debug on
	HTTP    Kind = "http"    // answers of its probes, errors among them
	Metrics Kind = "metrics" // answers of /metrics
	Traces  Kind = "traces"  // spans as a collector gets them
	Column  Kind = "column"  // of the outbox's tables, but for what holds the event itself
	Command Kind = "command" // what outboxctl, config show and refused starts print, and command lines
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Log, HTTP, Metrics, Traces, Column, Command} }

// Ledger is what was searched, and what was found.
type Ledger struct {
	searcher *Searcher

	mu     sync.Mutex
	places map[Kind]map[string]bool
	bytes  map[Kind]int
	hits   []Hit
}

// NewLedger is an empty one.
func NewLedger(searcher *Searcher) *Ledger {
	return &Ledger{searcher: searcher, places: map[Kind]map[string]bool{}, bytes: map[Kind]int{}}
}

// Look searches a text. One place may be looked at more than once.
func (l *Ledger) Look(kind Kind, place string, text []byte) {
	hits := l.searcher.Search(string(kind)+": "+place, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places[kind] == nil {
		l.places[kind] = map[string]bool{}
	}
	l.places[kind][place] = true
	l.bytes[kind] += len(text)
	for _, hit := range hits {
		if !slices.ContainsFunc(l.hits, func(h Hit) bool {
			return h.Canary == hit.Canary && h.Form == hit.Form && h.Place == hit.Place
		}) {
			l.hits = append(l.hits, hit)
		}
	}
}

// Locations is how many different places of a kind were searched.
func (l *Ledger) Locations(kind Kind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.places[kind])
}

// Bytes is how much text of a kind was searched.
func (l *Ledger) Bytes(kind Kind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes[kind]
}

// Hits are what was found.
func (l *Ledger) Hits() []Hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.hits)
}
