package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := wait.For(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("it waited %s: %v", time.Since(began), err)
		}
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(enough) })
		began = time.Now()
		if err := wait.For(ctx, time.Hour); !errors.Is(err, enough) || time.Since(began) != time.Minute {
			t.Errorf("it waited %s: %v", time.Since(began), err)
		}
		if err := wait.For(ctx, 0); !errors.Is(err, enough) {
			t.Errorf("nothing to wait for, and nobody who waits: %v", err)
		}
		if err := wait.For(t.Context(), 0); err != nil {
			t.Errorf("nothing to wait for: %v", err)
		}
	})
}
