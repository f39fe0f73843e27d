package console

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// sideBySide reads what a page needs, and waits for all: the pool has a few connections, and a page is as slow as its
// slowest read then, not as their sum.
func sideBySide(reads ...func() error) error {
	failed := make([]error, len(reads))
	var all sync.WaitGroup
	for i, read := range reads {
		all.Go(func() { failed[i] = withoutPanic(read) })
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err // the first one: the others say the same, mostly
		}
	}
	return nil
}

// withoutPanic has a read that panics end with an error: a server outlives a panic of the request, and not one beside
// it.
func withoutPanic(read func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("console: a read panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return read()
}
