package pubsubemulator

import (
	"context"
	"slices"
	"sync"
	"time"
)

// lateCalls holds the calls that are handled when nobody waits for them any more.
type lateCalls struct {
	mu   sync.Mutex
	held []*lateCall // in the order in which they came
}

type lateCall struct {
	released chan struct{} // closed to let it go
	handled  chan struct{} // closed when that was done
}

// handle keeps a call until its caller has gone and then for as long as after says, or until it is released. A caller
// that is still there then gets the answer.
func (l *lateCalls) handle(ctx context.Context, after time.Duration, done <-chan struct{},
	handle func(context.Context) (any, error),
) (any, error) {
	c := &lateCall{released: make(chan struct{}), handled: make(chan struct{})}
	l.mu.Lock()
	l.held = append(l.held, c)
	l.mu.Unlock()
	defer close(c.handled)
	defer l.forget(c)
	if !c.wait(ctx, after, done) {
		return nil, errStopping
	}
	return handle(context.WithoutCancel(ctx))
}

// wait returns when the call is to be handled, and false when it never will be.
func (c *lateCall) wait(ctx context.Context, after time.Duration, done <-chan struct{}) bool {
	select {
	case <-ctx.Done():
	case <-c.released:
		return true
	case <-done:
		return false
	}
	var over <-chan time.Time // never, when only Release ends it
	if after > 0 {
		timer := time.NewTimer(after)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-c.released:
	case <-done:
		return false
	}
	return true
}

func (l *lateCalls) forget(c *lateCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.held, c); at >= 0 {
		l.held = slices.Delete(l.held, at, at+1)
	}
}

// release lets all calls go that are held now, one after the other, and returns how many they were.
func (l *lateCalls) release() int {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	for _, c := range held {
		close(c.released)
		<-c.handled
	}
	return len(held)
}

// count is how many calls are held.
func (l *lateCalls) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
