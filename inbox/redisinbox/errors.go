package redisinbox

import (
	"errors"
	"fmt"
	"time"
)

// ErrRefused says that a consumer's name, an event's id or a ttl is none. Nothing was done, and trying again does not
// help.
var ErrRefused = errors.New("redisinbox: refused")

// HeldError says that another delivery of the event is being handled. It must not be acknowledged: if the one that
// handles it dies, this one is what is left. Have it delivered again after RetryAfter.
type HeldError struct {
	// RetryAfter is when the hold ends if nothing more is heard of the handler.
	RetryAfter time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("redisinbox: another delivery of the event is being handled: do not acknowledge this one, have "+
		"it delivered again in %s",
		e.RetryAfter.Round(time.Millisecond))
}

// UnavailableError says that Redis could not be asked, or would not write. If the handler was not run, nothing has
// happened: have the event delivered again later. If it was, the event is handled and not marked: acknowledge it, and a
// copy that comes all the same is handled again.
type UnavailableError struct {
	Err error
	// Handled tells that the handler was run and has finished.
	Handled bool
}

func (e *UnavailableError) Error() string {
	if e.Handled {
		return "redisinbox: the event is handled and could not be marked, so a copy of it would be handled again; " +
			"acknowledge it: " + e.Err.Error()
	}
	return "redisinbox: nobody knows whether the event was handled, so nothing was done; do not acknowledge it, have it " +
		"delivered again later: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// LostError says that the hold was lost while the handler ran, because the process stood still or Redis was away for
// longer than Config.Hold: another delivery may have been handled beside this one. If the handler has finished all the
// same, acknowledge the event; otherwise have it delivered again. It is also the cause of the end of the handler's
// context.
type LostError struct {
	// Err is the handler's error, nil if it has finished.
	Err error
	// Handled tells that the handler has finished.
	Handled bool
}

func (e *LostError) Error() string {
	switch {
	case e.Handled:
		return "redisinbox: the handler has finished, and another delivery took the event meanwhile, so the effect may " +
			"have happened twice; acknowledge it"
	case e.Err != nil:
		return "redisinbox: the hold on the event was lost and the handler has failed; do not acknowledge it, have it " +
			"delivered again: " + e.Err.Error()
	default:
		return "redisinbox: the hold on the event was lost, another delivery may be handled by now: stop"
	}
}

// Unwrap returns the handler's error.
func (e *LostError) Unwrap() error { return e.Err }

// Handled tells whether the event may be acknowledged after this answer of [Guard.Do]: whether it was handled, now or
// before, though the error may have something to say about it. Everything else must be delivered again.
func Handled(err error) bool {
	var unavailable *UnavailableError
	var lost *LostError
	switch {
	case err == nil:
		return true
	case errors.As(err, &lost):
		return lost.Handled
	case errors.As(err, &unavailable):
		return unavailable.Handled
	default:
		return false
	}
}
