package consumer

import (
	"sync"

	"github.com/posthaste-dev/posthaste/outbox"
)

// stalledAt is how many events fail, and none is handled in between, until that is taken for no fault of theirs.
const stalledAt = 3

// A stall tells an outage from bad events. While the consumer's database is away every event fails; if each failure
// counted, an outage of some minutes would send good events to the dead letters. So failures count only while other
// events are handled, or while too few fail to tell.
type stall struct {
	mu     sync.Mutex
	events map[outbox.ID]struct{} // that failed since one was handled, up to stalledAt
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
		s.events = make(map[outbox.ID]struct{}, stalledAt)
	}
	if len(s.events) < stalledAt {
		s.events[event] = struct{}{}
	}
	return len(s.events) >= stalledAt
}
