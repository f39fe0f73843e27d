// Package eventually waits for what nothing announces, and for no longer than anything takes that does not hang.
package eventually

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Patience is how long a test waits for something that takes a moment, also on a machine that is busy with many others:
// only what hangs takes as long.
const Patience = 3 * time.Minute

// every is how often a condition is looked at.
const every = 10 * time.Millisecond

// True returns when the condition holds, and fails the test if it does not come to hold. What is a sentence about the
// condition; last tells what was seen last, for the message of a failure.
func True(t testing.TB, what string, holds func() bool, last ...func() string) {
	t.Helper()
	// Not the test's context: what a test cleans up behind itself waits as well.
	err := Within(context.Background(), Patience, what, func() (bool, error) { return holds(), nil })
	if err == nil {
		return
	}
	for _, state := range last {
		err = fmt.Errorf("%w\n%s", err, state())
	}
	t.Fatal(err)
}

// Works tries again until there is no error.
func Works(ctx context.Context, try func() error) error {
	return Within(ctx, Patience, "it works", func() (bool, error) {
		err := try()
		return err == nil, err
	})
}

// Within looks again and again until the condition holds, or the context or the limit of time has ended. An error
// beside a yes ends it too; one beside a no is told if it stays the last.
func Within(ctx context.Context, limit time.Duration, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		yes, err := holds()
		if yes {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waited in vain for %s until %s: %w", limit, what, ctx.Err()), err)
		}
	}
}

// Receive returns what a goroutine of the test has to say, and fails the test if it says nothing.
func Receive[T any](t testing.TB, what string, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(Patience):
		t.Fatalf("waited in vain for %s until %s", Patience, what)
	}
	return value
}
