package googlepubsub

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/publish"
)

func classOf(err error) string {
	var (
		terminal   *publish.TerminalError
		rejected   *publish.RejectedError
		topicFault *publish.TopicError
	)
	switch {
	case err == nil:
		return "acknowledged"
	case errors.As(err, &terminal):
		return terminal.Reason
	case errors.As(err, &rejected):
		return "retryable"
	case errors.As(err, &topicFault):
		return "topic"
	case errors.Is(err, ErrBehindFailure):
		return "behind"
	case errors.Is(err, publish.ErrNotSent):
		return "not sent"
	default:
		return "unknown"
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	classes := map[codes.Code]string{
		codes.OK: "acknowledged", codes.InvalidArgument: "retryable",
		codes.NotFound: "topic", codes.Unauthenticated: "topic", codes.PermissionDenied: "topic",
		codes.ResourceExhausted: "topic",
		codes.Unavailable:       "topic", codes.FailedPrecondition: "topic", codes.Unimplemented: "topic",
		codes.DeadlineExceeded: "topic", codes.Canceled: "topic", codes.Aborted: "topic", codes.Internal: "topic",
		codes.Unknown: "topic",
	}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		want := classes[code]
		if want == "" {
			want = "unknown"
		}
		err := status.Error(code, "said the service")
		wrapped, _ := apierror.FromError(err) // as the library returns it
		for _, each := range []error{err, fmt.Errorf("alone: %w", err), error(wrapped)} {
			if code == codes.OK {
				each = nil
			}
			if got := classOf(classify(each)); got != want {
				t.Errorf("%v: class %s, want %s", code, got, want)
			}
		}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{pubsub.ErrOversizedMessage, publish.ReasonTooLarge},
		{pubsub.ErrPublishingPaused{OrderingKey: "order/1"}, "behind"},
		{pubsub.ErrPublisherStopped, "not sent"},
		{context.DeadlineExceeded, "topic"},
		{context.Canceled, "topic"},
	} {
		got := classify(c.err)
		if classOf(got) != c.want {
			t.Errorf("%v: class %s, want %s", c.err, classOf(got), c.want)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v: the cause is lost in %v", c.err, got)
		}
	}
}
