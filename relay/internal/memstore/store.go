// Package memstore is the database as the relay sees it, in memory: one thread, no clock of its own, and
// the answers that PostgreSQL would give. A seeded simulation runs on it, and a model test compares it
// with PostgreSQL step by step.
//
// Nothing here is safe for use by several goroutines. What is slow or torn in a real database (a fence in
// two statements, a commit that is not durable yet) is a call of its own, so that a simulation can
// put other things in between.
package memstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// ErrStandby is the answer of a server in recovery to everything that writes.
var ErrStandby = errors.New("memstore: the server is in recovery")

// Config is what a store needs from its surroundings.
type Config struct {
	// Lane is the lane of an aggregate, from First on.
	Lane func(core.Aggregate) int16
	// First is the number of the first lane.
	First int16
	// Lanes is the number of lanes. Defaults to 64.
	Lanes int
	// Clock is the database's clock. Defaults to one that stands still.
	Clock func() time.Duration
	// Epoch is the wall time of the clock's zero.
	Epoch time.Time
	// Incarnation names a server by how often there was another postmaster, and how often one recovered. Defaults to
	// a name that has both.
	Incarnation func(starts, recoveries int) string
	// Next is the Index that the next delivery will have, for the records of letters and actions.
	// Defaults to 0: nobody knows.
	Next func() uint64
}

// Store is a database with one outbox.
type Store struct {
	config    Config
	lanes     []lane
	events    map[outbox.ID]*row
	relays    []relay
	topics    []TopicRow
	letters   []LetterRow
	actions   []ActionRow
	requests  []RequestRow
	requested int64        // how many there were
	pauses    []core.Pause // by scope and name
	limits    []core.Limit // by topic
	changes   []Change
	server    server
	standby   bool

	// The sequence, and the value to which a crash would take it back.
	last, durable int64
	versions      int64 // of held rows
	open          []*Tx
	begun         int // transactions of this incarnation, for their virtual ids
	nextXID       uint64
	// Rows of commits that did not wait for the disk, until something else does.
	volatile []*row
}

var _ core.Store = (*Store)(nil)

// New returns an empty store.
func New(config Config) *Store {
	if config.Lanes == 0 {
		config.Lanes = 64
	}
	if config.Clock == nil {
		config.Clock = func() time.Duration { return 0 }
	}
	if config.Incarnation == nil {
		config.Incarnation = func(starts, recoveries int) string {
			return fmt.Sprintf("incarnation %d.%d", starts, recoveries)
		}
	}
	if config.Next == nil {
		config.Next = func() uint64 { return 0 }
	}
	return &Store{
		config:  config,
		lanes:   make([]lane, config.Lanes),
		events:  make(map[outbox.ID]*row),
		server:  server{starts: 1},
		nextXID: 700,
	}
}

func (s *Store) now() time.Duration { return s.config.Clock() }

// lane returns the lane of that number, nil if there is none.
func (s *Store) lane(number int16) *lane {
	if at := int(number - s.config.First); at >= 0 && at < len(s.lanes) {
		return &s.lanes[at]
	}
	return nil
}

// flush makes everything written so far durable, as every commit that waits for the disk does.
func (s *Store) flush() {
	s.durable = s.last
	s.volatile = s.volatile[:0]
}

// write begins what only a primary can do.
func (s *Store) write() error {
	if s.standby {
		return ErrStandby
	}
	return nil
}

// Barrier makes durable what was committed before it.
func (s *Store) Barrier(_ context.Context, incarnation string) error {
	if incarnation != "" && incarnation != s.incarnationName() {
		return errors.New("memstore: the server was restarted since the read")
	}
	if err := s.write(); err != nil {
		return err
	}
	s.flush()
	return nil
}

// SetStandby says whether the server is in recovery: it then does not write, and its sequence runs ahead.
func (s *Store) SetStandby(standby bool) { s.standby = standby }
