package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// RL-8: whose fault an error is.
func TestWhoseFaultAnErrorIs(t *testing.T) {
	t.Parallel()
	cause := errors.New("because")
	for name, is := range map[string]struct {
		err  error
		want core.Outcome
	}{
		"none":     {nil, core.Outcome{Class: core.Acknowledged}},
		"rejected": {&publish.RejectedError{Err: cause}, core.Outcome{Class: core.Rejected, Detail: "rejected: because"}},
		"too large": {
			&publish.TerminalError{Reason: publish.ReasonTooLarge, Err: cause},
			core.Outcome{Class: core.Terminal, Reason: "too_large", Detail: "too_large: because"},
		},
		"rejected for good": {
			&publish.TerminalError{Reason: publish.ReasonRejected, Err: cause},
			core.Outcome{Class: core.Terminal, Reason: "rejected", Detail: "rejected: because"},
		},
		"a reason of its own": {
			&publish.TerminalError{Reason: "moon phase", Err: cause},
			core.Outcome{Class: core.Terminal, Reason: "rejected", Detail: "moon phase: because"},
		},
		"route": {&publish.TopicError{Err: cause}, core.Outcome{Class: core.RouteFault, Detail: "topic: because"}},
		"route, later": {
			&publish.TopicError{Err: cause, RetryAfter: time.Minute},
			core.Outcome{Class: core.RouteFault, Detail: "topic: because", RetryAfter: time.Minute},
		},
		"route, in a year": {
			&publish.TopicError{Err: cause, RetryAfter: math.MaxInt64},
			core.Outcome{Class: core.RouteFault, Detail: "topic: because", RetryAfter: 10 * time.Minute},
		},
		"route, yesterday": {
			&publish.TopicError{Err: cause, RetryAfter: -time.Hour},
			core.Outcome{Class: core.RouteFault, Detail: "topic: because"},
		},
		"not sent": {publish.ErrNotSent, core.Outcome{Class: core.NotSent, Detail: "publish: the message was not sent"}},
		"deadline": {context.DeadlineExceeded, core.Outcome{Class: core.Unknown, Detail: "context deadline exceeded"}},
		"canceled": {context.Canceled, core.Outcome{Class: core.Unknown, Detail: "context canceled"}},
		"anything": {io.ErrUnexpectedEOF, core.Outcome{Class: core.Unknown, Detail: "unexpected EOF"}},
		"wrapped": {
			fmt.Errorf("client: %w", &publish.RejectedError{Err: cause}),
			core.Outcome{Class: core.Rejected, Detail: "client: rejected: because"},
		},
		"joined with the context": {
			errors.Join(context.Canceled, &publish.TopicError{Err: cause}),
			core.Outcome{Class: core.RouteFault, Detail: "context canceled topic: because"},
		},
		"not sent, for a refusal": {
			fmt.Errorf("%w: %w", publish.ErrNotSent, &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: cause}),
			core.Outcome{
				Class: core.NotSent, Detail: "publish: the message was not sent: too_large: because",
			},
		},
	} {
		if got := classify(is.err); got != is.want {
			t.Errorf("%s: %+v, want %+v", name, got, is.want)
		}
	}
}

// S-4: whatever a client says is made fit to be stored, whichever class it is.
func TestEveryErrorIsCleaned(t *testing.T) {
	t.Parallel()
	cause := errors.New("no\x00pe \x1b[31m password=hunter2 " + strings.Repeat("long ", 1000))
	for _, err := range []error{
		&publish.RejectedError{Err: cause}, &publish.TerminalError{Err: cause}, &publish.TopicError{Err: cause},
		fmt.Errorf("%w: %w", publish.ErrNotSent, cause), cause,
	} {
		detail := classify(err).Detail
		if len(detail) > 2100 || strings.ContainsAny(detail, "\x00\x1b") || strings.Contains(detail, "hunter2") {
			t.Errorf("%T: %.100q", err, detail)
		}
	}
}
