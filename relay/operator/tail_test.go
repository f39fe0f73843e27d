package operator_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestTailMovesAlong: each look goes ten minutes further back than the one before began, by the database's clock.
func TestTailMovesAlong(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		clock := func() (now time.Time) {
			if err := e.admin.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now); err != nil {
				t.Fatal(err)
			}
			return now
		}
		tail := e.operator.Tail(operator.Filter{})
		for look := range 3 {
			before := clock()
			if _, _, err := tail.Next(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			if at := tail.Since().Add(10 * time.Minute); at.Before(before) || at.After(clock()) {
				t.Errorf("look %d: the next begins at %s, and this one began at %s", look, at, before)
			}
		}
	})
}
