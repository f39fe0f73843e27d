package redisinbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/outbox"
)

// Do runs the handler for an event that this consumer has not handled, and marks the event when it has finished.
// already tells that it was handled before: the handler was not run, acknowledge it.
//
// An event is handled when the handler returns nil. If it fails or panics, the event is free at once for the next
// delivery, and the handler's error is returned, or the panic goes on. The handler's context ends with ctx, and when
// the hold is lost; its cause is then a [LostError]. A handler should heed it: from then on it may not be the only one.
//
// [Handled] tells whether to acknowledge, also where there is an error. For the rest see [HeldError],
// [UnavailableError] and [LostError]; whatever is not acknowledged must be delivered again.
func (g *Guard) Do(ctx context.Context, consumer string, eventID outbox.ID,
	handler func(ctx context.Context) error,
) (already bool, err error) {
	key, err := g.key(consumer, eventID)
	if err != nil {
		return false, err
	}
	log := g.config.Logger.With("consumer", consumer, "event_id", eventID)
	h := g.newHold(key)
	crash.Point("hold.before")
	found, left, err := h.take(ctx)
	switch {
	case err != nil && (!g.config.FailOpen || ctx.Err() != nil):
		return false, &UnavailableError{Err: err}
	case err != nil:
		log.WarnContext(ctx,
			"redis cannot be asked whether the event was handled; it is handled unguarded, because FailOpen is set",
			"error", err)
		err = h.runUnguarded(ctx, handler)
	case strings.HasPrefix(found, heldMark):
		return false, &HeldError{RetryAfter: g.retryAfter(left)}
	case found != "":
		return true, nil
	default:
		crash.Point("hold.after")
		err = h.run(ctx, handler, func(err error) {
			log.WarnContext(ctx, "a failed event could not be freed; it can be handled again when its hold ends", "error", err)
		})
	}
	if _, unavailable := errors.AsType[*UnavailableError](err); unavailable && g.config.FailOpen && Handled(err) {
		log.WarnContext(ctx, "the event is handled and could not be marked; a copy of it would be handled again",
			"error", err)
		return false, nil
	}
	return false, err
}

// retryAfter is what is left of another's hold. Redis says -1 ms of a mark that does not expire, which somebody else
// has written, and 0 in the last millisecond.
func (g *Guard) retryAfter(left time.Duration) time.Duration {
	if left < 0 {
		return g.config.Hold
	}
	return max(left, time.Millisecond)
}

// run runs the handler under the hold, and tells if the event of a failed handler could not be freed.
func (h *hold) run(ctx context.Context, handler func(context.Context) error, notFreed func(error)) error {
	handling, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	stop := h.extend(handling, lose)
	returned := false
	free := func() {
		stop() // first, or an extension that is on its way would take the event again
		if err := h.release(ctx); err != nil {
			notFreed(err)
		}
	}
	defer func() {
		if !returned { // a panic, which goes on
			free()
		}
	}()
	err := handler(handling)
	returned = true
	if err == nil {
		stop()
		return h.finish(ctx)
	}
	free()
	if _, lost := errors.AsType[*LostError](context.Cause(handling)); lost {
		return &LostError{Err: err}
	}
	return failed(err)
}

// runUnguarded runs the handler without a hold. Redis may be back by its end and take the mark.
func (h *hold) runUnguarded(ctx context.Context, handler func(context.Context) error) error {
	if err := handler(ctx); err != nil {
		return failed(err)
	}
	return h.finish(ctx)
}

// failed is a handler's error. A handler that has a guard of its own may return what that one said, and nobody must
// take it for a word about this event.
func failed(err error) error {
	if Handled(err) {
		return fmt.Errorf("the handler has failed: %v", err) //nolint:errorlint // not to be unwrapped
	}
	return err
}
