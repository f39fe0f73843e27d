package consumer

import (
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

const (
	// stalledAt is how many events fail, and none is handled in between, until that is taken for no fault of theirs.
	stalledAt = 3
	// stalledTries is how often a handler is run for one delivery while the consumer stalls: for about five minutes. Then
	// the message goes back, not charged, so that others have their turn: it may be bad after all, and those that wait
	// behind it good.
	stalledTries = 10
	// stalledWithin is for how long a failure counts: longer than anybody waits before the next try. What has not failed
	// for longer is dead or elsewhere, and says nothing about those that fail now. Where an outage meets one aggregate
	// only, an event dies of it about so often.
	stalledWithin = time.Hour
)

// A stall tells an outage from bad events. While the consumer's database is away every event fails; if each failure
// counted, an outage of some minutes would send good events to the dead letters. So failures count only while other
// events are handled, or while too few fail to tell. A duplicate says nothing: it may be Redis that knows it.
type stall struct {
	mu     sync.Mutex
	events map[outbox.ID]time.Time // that failed of late and since one was handled, and when; up to stalledAt
}

func (s *stall) handled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.events)
}

// failed tells whether it is more than this event that fails.
func (s *stall) failed(event outbox.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		s.events = make(map[outbox.ID]time.Time, stalledAt)
	}
	now, oldest := time.Now(), event
	s.events[event] = now
	for id, at := range s.events {
		switch {
		case now.Sub(at) > stalledWithin:
			delete(s.events, id)
		case at.Before(s.events[oldest]):
			oldest = id
		}
	}
	if len(s.events) > stalledAt { // those that failed last
		delete(s.events, oldest)
	}
	return len(s.events) >= stalledAt
}
