package hostile

import (
	"context"
	"sync"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// troubles is a publisher that fails chosen events, as a broker or a client library might, before it publishes.
// It is no pipeliner, also where the one behind it is: it does not fail what comes behind a failure.
type troubles struct {
	inner publish.Publisher
	mu    sync.Mutex
	plan  map[outbox.ID]func(message []byte, try int) error
	tries map[outbox.ID]int
}

func newTroubles() *troubles {
	return &troubles{plan: map[outbox.ID]func([]byte, int) error{}, tries: map[outbox.ID]int{}}
}

func (t *troubles) before(inner publish.Publisher) publish.Publisher {
	t.inner = inner
	return t
}

// add plans what happens to an event. It must be called before the event is committed.
func (t *troubles) add(id outbox.ID, trouble func(message []byte, try int) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan[id] = trouble
}

// Publish fails an event that is planned to fail, or publishes it.
func (t *troubles) Publish(ctx context.Context, message *publish.Message) error {
	t.mu.Lock()
	trouble := t.plan[message.ID]
	t.tries[message.ID]++
	try := t.tries[message.ID]
	t.mu.Unlock()
	if trouble != nil {
		if err := trouble(message.Body, try); err != nil {
			return err
		}
	}
	return t.inner.Publish(ctx, message)
}
