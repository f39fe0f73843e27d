package console

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestReadsSideBySide: all are done, the first error counts, and a panic is one.
func TestReadsSideBySide(t *testing.T) {
	t.Parallel()
	met := make(chan bool)
	if err := sideBySide(func() error { met <- true; return nil }, func() error { <-met; return nil }); err != nil {
		t.Error(err)
	}
	broken, done := errors.New("broken"), false
	err := sideBySide(func() error { done = true; return nil }, func() error { return broken },
		func() error { panic("no") })
	if !errors.Is(err, broken) || !done {
		t.Errorf("got %v, and the first is done: %t", err, done)
	}
	if err := sideBySide(func() error { panic("no") }); err == nil || !strings.Contains(err.Error(), "panicked: no") {
		t.Errorf("got %v", err)
	}
}

// TestASlowPageIsReadLessOften, but still before somebody thinks that it has stopped.
func TestASlowPageIsReadLessOften(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		usual, want int
		took        time.Duration
	}{
		{5, 5, 3 * time.Millisecond},
		{3, 9, 60 * time.Millisecond},
		{5, 15, 100 * time.Millisecond},
		{5, 15, 9 * time.Second},
		{0, 0, 9 * time.Second},
		{30, 30, 9 * time.Second},
	} {
		if got := again(c.usual, c.took); got != c.want {
			t.Errorf("a page that took %s is read again after %d s, wanted %d", c.took, got, c.want)
		}
	}
}
