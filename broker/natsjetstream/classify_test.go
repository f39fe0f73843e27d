package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/relay"
)

// class names what the relay does with an error.
func class(err error) string {
	var (
		route    *relay.RouteError
		terminal *relay.TerminalError
		rejected *relay.RejectedError
	)
	switch {
	case errors.As(err, &route):
		return "route"
	case errors.As(err, &terminal):
		return terminal.Reason
	case errors.As(err, &rejected):
		return "rejected for now"
	default:
		return "unknown"
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	api := func(code jetstream.ErrorCode) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{Code: 503, ErrorCode: code, Description: "words that may change"})
	}
	for _, c := range []struct {
		name string
		say  func(error) error
		err  error
		want string
	}{
		{"max_payload", beforeSending, nats.ErrMaxPayload, "too_large"},
		{"a header's name", beforeSending, nats.ErrBadHeaderMsg, "rejected"},
		{"reconnecting", beforeSending, nats.ErrReconnectBufExceeded, "route"},
		{"disconnected before sending", beforeSending, nats.ErrDisconnected, "route"},
		{"closed", beforeSending, nats.ErrConnectionClosed, "route"},
		{"draining", beforeSending, nats.ErrConnectionDraining, "route"},
		{"a server without headers", beforeSending, nats.ErrHeadersNotSupported, "route"},
		{"a write that failed", beforeSending, errors.New("broken pipe"), "route"},
		{"cancelled before sending", beforeSending, context.Canceled, "unknown"},

		{"no responders", afterSending, nats.ErrNoResponders, "route"},
		{"no stream", afterSending, jetstream.ErrNoStreamResponse, "route"},
		{"permissions", afterSending, fmt.Errorf("%w: publish to x", nats.ErrPermissionViolation), "route"},
		{"authorization", afterSending, nats.ErrAuthorization, "route"},
		{"credentials expired", afterSending, nats.ErrAuthExpired, "route"},
		{"stream not found", afterSending, api(10059), "route"},
		{"expected stream does not match", afterSending, api(10060), "route"},
		{"JetStream not enabled", afterSending, api(10076), "route"},
		{"JetStream not enabled for the account", afterSending, api(10039), "route"},
		{"insufficient resources", afterSending, api(10023), "route"},
		{"account limits", afterSending, api(10002), "route"},
		{"insufficient storage", afterSending, api(10047), "route"},
		{"insufficient memory", afterSending, api(10028), "route"},
		{"full, or a disk that failed", afterSending, api(10077), "route"},
		{"sealed", afterSending, api(10109), "route"},
		{"offline", afterSending, api(10118), "route"},
		{"no leader", afterSending, api(10008), "route"},
		{"too many requests", afterSending, api(10167), "route"},
		{"max_msg_size", afterSending, api(10054), "too_large"},
		{"headers above 64 KiB", afterSending, api(10097), "too_large"},
		{"the first copy is still being stored", afterSending, api(10158), "unknown"},
		{"a code of tomorrow", afterSending, api(19999), "unknown"},
		{"disconnected after sending", afterSending, nats.ErrDisconnected, "route"},
		{"closed after sending", afterSending, nats.ErrConnectionClosed, "route"},
		{"no acknowledgement in time", afterSending, jetstream.ErrAsyncPublishTimeout, "unknown"},
		{"timeout", afterSending, nats.ErrTimeout, "unknown"},
		{"an answer that makes no sense", afterSending, jetstream.ErrInvalidJSAck, "unknown"},
		{"deadline", afterSending, context.DeadlineExceeded, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := c.say(c.err)
			if class(got) != c.want {
				t.Errorf("class %s, want %s: %v", class(got), c.want, got)
			}
			var answer *jetstream.APIError
			if !errors.Is(got, c.err) && !errors.As(got, &answer) {
				t.Errorf("%v does not say what happened: %v", got, c.err)
			}
		})
	}
}
