package consumer

import (
	"sync"

	"github.com/posthaste-dev/posthaste/outbox"
)

const (
	// leastFailures is how often an event fails here before it is given up, however often it was delivered. A broker
	// counts deliveries, also those that processes gave back that do not know the type, and those that died under it: by
	// those alone an event would be a dead letter at its first failure.
	leastFailures = 3
	// maxFailures bounds what is remembered: an event that failed here may be handled elsewhere. To forget one gives it
	// some attempts more.
	maxFailures = 10_000
)

// failures counts how often events have failed in this process.
type failures struct {
	mu     sync.Mutex
	events map[outbox.ID]int
}

// count counts one more.
func (f *failures) count(event outbox.ID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil || len(f.events) >= maxFailures {
		f.events = map[outbox.ID]int{}
	}
	f.events[event]++
	return f.events[event]
}

// forget is for an event that does not come again, or if it does, begins anew.
func (f *failures) forget(event outbox.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.events, event)
}
