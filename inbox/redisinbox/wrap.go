package redisinbox

import (
	"context"
	"errors"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
)

// maxHeldDelay is how long a message waits at most before Redis is asked about it again. A hold ends long before its
// time when its handler does, and what waits here may have others behind it.
const maxHeldDelay = time.Second

var _ consumer.Middleware = (*Guard)(nil).Once

// Once guards a consumer's handlers with [Guard.Do], each tenant's events apart. It is a [consumer.Middleware]. An
// event that was handled before is [consumer.ErrDuplicate]. While another delivery is being handled, or Redis cannot be
// asked, the event is delayed, and no attempt is counted.
func (g *Guard) Once(name string, next consumer.Handler) consumer.Handler {
	return func(ctx context.Context, event *consumer.Event) error {
		before := false
		already, err := g.ForTenant(event.TenantID).Do(ctx, name, event.ID, func(ctx context.Context) error {
			err := next(ctx, event)
			if errors.Is(err, consumer.ErrDuplicate) { // the handler has a memory of its own; this one learns it
				before = true
				return nil
			}
			return err
		})
		if err != nil && Handled(err) {
			g.config.Logger.WarnContext(ctx, "an event is handled, and its mark is not certain", "consumer", name,
				"event_id", event.ID, "error", err)
			err = nil
		}
		if err == nil && (already || before) {
			return consumer.ErrDuplicate
		}
		return delayed(err)
	}
}

// delayed makes a delay of what says nothing about the event. A lost hold is none: the handler was run and has failed.
func delayed(err error) error {
	var lost *LostError
	var held *HeldError
	var unavailable *UnavailableError
	switch {
	case errors.As(err, &lost):
		return err
	case errors.As(err, &held):
		return &consumer.DelayError{After: min(held.RetryAfter, maxHeldDelay), Err: err}
	case errors.As(err, &unavailable):
		return &consumer.DelayError{After: maxHeldDelay, Err: err}
	}
	return err
}
