// Package wait waits, and stops waiting when nobody wants the rest any more.
package wait

import (
	"context"
	"time"
)

// For waits, if there is anything to wait for. An error is the cause of the context's end, which came before.
func For(ctx context.Context, length time.Duration) error {
	if length <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
