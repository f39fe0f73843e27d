package access

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// watched is what a file says. It is read again when somebody needs it, but not more often than every few seconds.
//
// The text itself is compared and not its time: two changes within one tick of the file system's clock look alike,
// and a changed role may well have the same length.
type watched[T any] struct {
	name   string
	every  time.Duration
	now    func() time.Time
	logger *slog.Logger
	read   func() ([]byte, error)
	parse  func([]byte) (T, error)

	current atomic.Pointer[T]

	mu      sync.Mutex
	text    []byte
	checked time.Time
	// problem is why the file on disk is not in use.
	problem string
}

// open reads it for the first time, when an error is still one of the caller.
func (w *watched[T]) open() error {
	text, err := w.read()
	if err != nil {
		return err
	}
	parsed, err := w.parse(text)
	if err != nil {
		return err
	}
	w.text, w.checked = text, w.now()
	w.current.Store(&parsed)
	return nil
}

// get is what the file said when it was last in order. Nobody waits for another's look at it.
func (w *watched[T]) get(ctx context.Context) *T {
	if w.mu.TryLock() {
		defer w.mu.Unlock()
		if now := w.now(); now.Sub(w.checked) >= w.every || now.Before(w.checked) {
			w.checked = now
			w.refresh(ctx)
		}
	}
	return w.current.Load()
}

// refresh takes over a changed file. One that is not in order changes nothing, and is logged once.
func (w *watched[T]) refresh(ctx context.Context) {
	text, err := w.read()
	if err == nil && bytes.Equal(text, w.text) {
		w.problem = ""
		return
	}
	var parsed T
	if err == nil {
		parsed, err = w.parse(text)
	}
	if err != nil {
		if err.Error() != w.problem {
			w.problem = err.Error()
			w.logger.ErrorContext(ctx, "a changed file is not in order, so the console goes on with what it said before",
				slog.String("file", w.name), slog.String("error", w.problem))
		}
		return
	}
	w.text, w.problem = text, ""
	w.current.Store(&parsed)
	w.logger.InfoContext(ctx, "a changed file is in use", slog.String("file", w.name))
}
