package natsjetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/publish"
)

// Error codes of the server that nats.go has no name for.
const (
	codeAccountResources   jetstream.ErrorCode = 10002
	codeClusterUnavailable jetstream.ErrorCode = 10008
	codeClusterNotLeader   jetstream.ErrorCode = 10009
	codeNoResources        jetstream.ErrorCode = 10023
	codeNoMemory           jetstream.ErrorCode = 10028
	codeNoStorage          jetstream.ErrorCode = 10047
	codeStreamNotMatch     jetstream.ErrorCode = 10060
	codeStoreFailed        jetstream.ErrorCode = 10077 // the stream is full and discards new messages, or its disk failed
	codeHeaderTooLarge     jetstream.ErrorCode = 10097
	codeSealed             jetstream.ErrorCode = 10109
	codeStreamOffline      jetstream.ErrorCode = 10118
	codeTooManyRequests    jetstream.ErrorCode = 10167
	codeStreamOfflineWhy   jetstream.ErrorCode = 10194
)

// beforeSending says whose fault it is that a message could not be handed to the connection. The server
// does not have it.
func beforeSending(err error) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return &publish.TerminalError{
			Reason: publish.ReasonTooLarge, Err: fmt.Errorf("above the server's max_payload: %w", err),
		}
	case errors.Is(err, nats.ErrBadHeaderMsg), errors.Is(err, nats.ErrBadSubject):
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", err, publish.ErrNotSent)
	default:
		// Closed, draining, reconnecting, a write that failed, a server without headers: whatever it
		// is, it is not this message.
		return &publish.TopicError{Err: err}
	}
}

// afterSending says whose fault it is that a message was not acknowledged.
func afterSending(err error) error {
	var answer *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return &publish.TopicError{Err: &misplacedError{"no stream has the subject, or its leader is away", err}}
	case errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrAuthorization),
		errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return &publish.TopicError{Err: err}
	case errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrConnectionClosed):
		// The stream may have the message, and whether it does is not this message's fault: with the connection went
		// all that was in flight.
		return &publish.TopicError{Err: err}
	case errors.As(err, &answer):
		return classOfAnswer(answer)
	default:
		// A deadline, an answer that makes no sense: the stream may have the message.
		return err
	}
}

// misplacedError is that of a message for which there is no stream.
type misplacedError struct {
	problem string
	err     error
}

func (e *misplacedError) Error() string { return e.problem + ": " + e.err.Error() }
func (e *misplacedError) Unwrap() error { return e.err }

// naming has an error about a missing stream say which one is missing: whoever reads it has to make it.
func naming(err error, subject, stream string) error {
	misplaced := (*misplacedError)(nil)
	if !errors.As(err, &misplaced) {
		return err
	}
	named := fmt.Sprintf("subject %q: ", subject)
	if stream != "" {
		named = fmt.Sprintf("subject %q, stream %q: ", subject, stream)
	}
	return &publish.TopicError{Err: &misplacedError{named + misplaced.problem, misplaced.err}}
}

// classOfAnswer says what the server's answer means. One that is not listed stays unknown: the message is sent
// again under the same id, and charged only if others get through.
func classOfAnswer(answer *jetstream.APIError) error {
	switch answer.ErrorCode {
	case jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return &publish.TerminalError{
			Reason: publish.ReasonTooLarge, Err: fmt.Errorf("above the stream's max_msg_size: %w", answer),
		}
	case codeHeaderTooLarge:
		return &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: answer}
	case jetstream.JSErrCodeStreamNotFound, codeStreamNotMatch:
		return &publish.TopicError{Err: &misplacedError{"another stream has the subject, or none", answer}}
	case jetstream.JSErrCodeJetStreamNotEnabled,
		jetstream.JSErrCodeJetStreamNotEnabledForAccount,
		codeAccountResources, codeClusterUnavailable, codeClusterNotLeader, codeNoResources, codeNoMemory, codeNoStorage,
		codeStoreFailed, codeSealed, codeStreamOffline, codeTooManyRequests, codeStreamOfflineWhy:
		return &publish.TopicError{Err: answer}
	default:
		return answer
	}
}
