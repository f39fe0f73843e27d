package console

import (
	"context"
	"sync"
	"time"
)

// fresh is for how long an answer serves everybody who opens the same page. However many consoles are open, the
// database is asked that often at most.
const fresh = 2 * time.Second

// mostKept is how many different answers are kept, such as charts of different topics.
const mostKept = 100

// latest keeps answers for a moment, each under a key. While one is being read, others who want it wait for it.
type latest[T any] struct {
	mu   sync.Mutex
	kept map[string]*answer[T]
}

type answer[T any] struct {
	done  chan struct{}
	at    time.Time
	value T
	err   error
}

func (l *latest[T]) get(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	l.mu.Lock()
	a := l.kept[key]
	if a == nil || a.over() {
		if l.kept == nil || len(l.kept) >= mostKept {
			l.kept = map[string]*answer[T]{}
		}
		a = &answer[T]{done: make(chan struct{})}
		l.kept[key] = a
		// Whoever began it may go away; others wait for it still.
		go a.read(context.WithoutCancel(ctx), read)
	}
	l.mu.Unlock()
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (a *answer[T]) read(ctx context.Context, read func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a.err = withoutPanic(func() (err error) { a.value, err = read(ctx); return err })
	a.at = time.Now()
	close(a.done)
}

// forget has whoever comes next read again, as after a change.
func (l *latest[T]) forget() {
	l.mu.Lock()
	l.kept = nil
	l.mu.Unlock()
}

// over tells whether an answer is there and too old. One that failed serves only those who waited for it.
func (a *answer[T]) over() bool {
	select {
	case <-a.done:
		return a.err != nil || time.Since(a.at) > fresh
	default:
		return false
	}
}
