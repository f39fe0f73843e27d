package consumer

import (
	"errors"
	"sync"
)

// errUnknown is why a message of a type without a handler is given back.
var errUnknown = errors.New("consumer: the event type has no handler here: if it never will have one, name it in " +
	"Ignore")

// maxUnknown bounds what is remembered of types: whoever publishes to the topic chooses them.
const maxUnknown = 1000

// unknown are the types without a handler that messages had.
type unknown struct {
	mu    sync.Mutex
	types map[string]int
}

// met counts the messages of a type.
func (u *unknown) met(eventType string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.types == nil || len(u.types) >= maxUnknown {
		u.types = map[string]int{}
	}
	u.types[eventType]++
	return u.types[eventType]
}
