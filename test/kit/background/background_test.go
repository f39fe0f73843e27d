package background_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// failing is a test that counts its failures.
type failing struct {
	testing.TB
	failures int
}

func (*failing) Helper()                 {}
func (f *failing) Errorf(string, ...any) { f.failures++ }

func TestItEndsWithTheTest(t *testing.T) { //nolint:paralleltest // what a test inside it leaves is looked at
	var ends []string
	t.Run("a test", func(t *testing.T) {
		stop := background.Run(t, "a", func(ctx context.Context) error { <-ctx.Done(); ends = append(ends, "a"); return nil })
		stop()
		stop() // once is enough
		background.Run(t, "b", func(ctx context.Context) error { <-ctx.Done(); ends = append(ends, "b"); return nil })
	})
	if len(ends) != 2 || ends[0] != "a" || ends[1] != "b" {
		t.Errorf("these have ended: %v", ends)
	}
	f := &failing{TB: t}
	background.Run(f, "c", func(context.Context) error { return errors.New("broken") })()
	if f.failures != 1 {
		t.Errorf("an error counts as %d failures", f.failures)
	}
}
