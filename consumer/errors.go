package consumer

import (
	"errors"
	"fmt"
	"time"
)

// ErrDuplicate is what a handler returns for an event that it has handled before: the message is acknowledged.
var ErrDuplicate = errors.New("consumer: handled before")

// A DelayError says that the event cannot be handled now, through no fault of its own: the handler is run again after a
// time, the message stays unacknowledged meanwhile, and no attempt is counted. Return it when a server that every event
// needs is away, or when another delivery is being handled: if that one's process dies, this one is what is left.
type DelayError struct {
	After time.Duration
	Err   error
}

func (e *DelayError) Error() string { return fmt.Sprintf("consumer: delayed: %v", e.Err) }

// Unwrap returns the reason.
func (e *DelayError) Unwrap() error { return e.Err }

// A PoisonError says that the message will never be handled, however often it comes.
type PoisonError struct{ Err error }

// Poison makes an error a [PoisonError]. No error stays none.
func Poison(err error) error {
	if err == nil {
		return nil
	}
	return &PoisonError{Err: err}
}

func (e *PoisonError) Error() string { return fmt.Sprintf("consumer: never to be handled: %v", e.Err) }

// Unwrap returns the reason.
func (e *PoisonError) Unwrap() error { return e.Err }
