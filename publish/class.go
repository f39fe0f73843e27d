package publish

import "errors"

// Class says in one word what an answer of a publisher means, in logs, traces and metrics.
type Class string

// The classes.
const (
	Published  Class = "published"   // the broker has acknowledged the message
	Rejected   Class = "rejected"    // a [RejectedError]
	Terminal   Class = "terminal"    // a [TerminalError]
	TopicFault Class = "topic_fault" // a [TopicError]
	NotSent    Class = "not_sent"    // [ErrNotSent]
	Unknown    Class = "unknown"     // any other error: the broker may have the message
)

// ClassOf says whose fault an error of a publisher is: the one place where that is decided.
func ClassOf(err error) (class Class) {
	defer func() {
		// The answer of a pipeliner comes from a goroutine of its own, where nobody else would catch a panic of the error.
		if recover() != nil {
			class = Unknown
		}
	}()
	var (
		terminal *TerminalError
		rejected *RejectedError
		topic    *TopicError
	)
	switch {
	case err == nil:
		return Published
	case errors.Is(err, ErrNotSent):
		return NotSent
	case errors.As(err, &terminal):
		return Terminal
	case errors.As(err, &rejected):
		return Rejected
	case errors.As(err, &topic):
		return TopicFault
	default:
		return Unknown
	}
}
