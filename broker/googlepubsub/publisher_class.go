package googlepubsub

import (
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/publish"
)

// classify says whose fault an error of the library is. It is the only place that does.
//
// A whole topic is refused with:
//   - NOT_FOUND: the topic, or the project.
//   - UNAUTHENTICATED, PERMISSION_DENIED: the credentials.
//   - RESOURCE_EXHAUSTED: the quota.
//   - UNAVAILABLE: the service or the way to it.
//   - FAILED_PRECONDITION: the topic's encryption key is disabled, or its policy forbids the region.
//   - UNIMPLEMENTED: what answers there is not Pub/Sub.
//   - DEADLINE_EXCEEDED, CANCELLED, ABORTED, INTERNAL, UNKNOWN: trouble of the service, of a server of it that has some
//     of the keys, or of the way to it. None of them is ever about one message, and Google's own clients send such a
//     message again until it passes.
//
// These last, and UNAVAILABLE, leave open whether Pub/Sub has the message.
//
// INVALID_ARGUMENT is about the message, for instance one that the topic's schema refuses: what is wrong
// with the topic's name is found before. It is retried and not terminal, because a schema can be attached
// to a topic by mistake, and detached.
//
// All else is not among what Pub/Sub is known to answer, and leaves open whether it has the message.
func classify(err error) error {
	if err == nil {
		return nil
	}
	paused := pubsub.ErrPublishingPaused{}
	switch {
	case errors.As(err, &paused):
		return fmt.Errorf("%w: %w", ErrBehindFailure, err)
	case errors.Is(err, pubsub.ErrPublisherStopped):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, pubsub.ErrOversizedMessage):
		return &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: fmt.Errorf("googlepubsub: %w", err)}
	}
	err = fmt.Errorf("googlepubsub: %w", err)
	switch status.Code(err) {
	case codes.NotFound, codes.Unauthenticated, codes.PermissionDenied, codes.ResourceExhausted,
		codes.Unavailable, codes.FailedPrecondition, codes.Unimplemented,
		codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Internal, codes.Unknown:
		return &publish.TopicError{Err: err, RetryAfter: retryAfter(err)}
	case codes.InvalidArgument:
		return &publish.RejectedError{Err: err}
	default:
		return err
	}
}

// maybeAnothers tells of the two errors that a message gets for another one: that of the request which they
// shared, and that of a key which another one paused. The message was not accepted with either.
func maybeAnothers(err error) bool {
	paused := pubsub.ErrPublishingPaused{}
	return errors.As(err, &paused) || status.Code(err) == codes.InvalidArgument
}

// retryAfter is how long the service asks to be left alone, or zero.
func retryAfter(err error) time.Duration {
	if details, ok := apierror.FromError(err); ok {
		return max(0, details.Details().RetryInfo.GetRetryDelay().AsDuration())
	}
	return 0
}
