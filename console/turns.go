package console

import (
	"context"
	"sync"
)

// mostTurns is how many requests of one user are worked on at once. More wait for each other: whatever somebody opens,
// the few connections serve others as well.
const mostTurns = 2

// turns are those of each user who has some.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	taken chan struct{}
	users int // who have it or wait for it
}

// take waits for a turn, until the context ends, and returns what gives it back.
func (t *turns) take(ctx context.Context, user string) (end func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[string]*turn{}
	}
	one := t.of[user]
	if one == nil {
		one = &turn{taken: make(chan struct{}, mostTurns)}
		t.of[user] = one
	}
	one.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.of, user)
		}
	}
	select {
	case one.taken <- struct{}{}:
		return func() { <-one.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
