package publish

import (
	"errors"
	"time"
)

// RejectedError says that the broker refused this message for now: the event is charged with an attempt
// and tried again later.
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string { return "rejected: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *RejectedError) Unwrap() error { return e.Err }

// Reasons of a [TerminalError]: the error_reason of the dead letter.
const (
	ReasonTooLarge = "too_large"
	ReasonRejected = "rejected"
)

// TerminalError says that this message can never be published: the event is dead at once.
type TerminalError struct {
	Reason string // ReasonTooLarge or ReasonRejected
	Err    error
}

func (e *TerminalError) Error() string { return e.Reason + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TerminalError) Unwrap() error { return e.Err }

// TopicError says that the topic cannot take messages: the broker is down, the topic is missing, the
// credentials are refused, the quota is spent. The topic is paused and probed; no event is charged. Where the topic
// carries other events meanwhile, this one alone is tried again later.
//
// It does not say that the broker does not have the message: a connection that broke may have taken the answer with it.
// So it is also for an outcome that nobody knows, of a broker that is known never to fail that way because of one
// message, and whose own clients would try for ever.
type TopicError struct {
	Err error
	// RetryAfter is how long the broker asked to be left alone. Defaults to the relay's own backoff.
	RetryAfter time.Duration
}

func (e *TopicError) Error() string { return "topic: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TopicError) Unwrap() error { return e.Err }

// ErrNotSent says that the message was not handed to the broker at all, for instance because one before it in
// its aggregate failed. It is sent again, and nobody is charged.
var ErrNotSent = errors.New("publish: the message was not sent")
