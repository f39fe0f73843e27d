// Package background runs what goes on beside a test: relays, loops of consumers, retention.
package background

import (
	"context"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Run runs something until the test ends or stops it, and fails the test if it does not stop, or not well.
func Run(t testing.TB, what string, run func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := eventually.Receive(t, what+" has stopped", ended); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
	t.Cleanup(stop)
	return stop
}
