package hostile

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// An arrival is what a broker has of one event.
type arrival struct {
	at         time.Time // by the broker's clock, which is this machine's
	times      int
	body       [sha256.Size]byte
	attributes map[string]string
}

// arrivals are what was read back from a topic.
type arrivals struct {
	mu      sync.Mutex
	byID    map[outbox.ID]arrival
	strange int // without the id of an event
	changed chan struct{}
}

func newArrivals() *arrivals {
	return &arrivals{byID: map[outbox.ID]arrival{}, changed: make(chan struct{})}
}

func (a *arrivals) add(at time.Time, body []byte, attributes map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, err := outbox.ParseID(attributes["event_id"])
	if err != nil {
		a.strange++
		return
	}
	known, again := a.byID[id]
	if !again {
		known = arrival{at: at, body: sha256.Sum256(body), attributes: attributes}
	}
	known.times++
	a.byID[id] = known
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *arrivals) of(id outbox.ID) (found arrival, arrived bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, arrived = a.byID[id]
	return found, arrived
}

// duplicates counts the copies beyond the first.
func (a *arrivals) duplicates() (copies, strange int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, each := range a.byID {
		copies += each.times - 1
	}
	return copies, a.strange
}

// await waits until the event is there.
func (a *arrivals) await(ctx context.Context, id outbox.ID) {
	for {
		a.mu.Lock()
		_, arrived := a.byID[id]
		changed := a.changed
		a.mu.Unlock()
		if arrived {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
