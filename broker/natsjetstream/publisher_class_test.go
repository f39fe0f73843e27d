package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/publish"
)

// class names what the relay does with an error.
func class(err error) string {
	var (
		topicFault *publish.TopicError
		terminal   *publish.TerminalError
		rejected   *publish.RejectedError
	)
	switch {
	case errors.As(err, &topicFault):
		return "topic"
	case errors.As(err, &terminal):
		return terminal.Reason
	case errors.As(err, &rejected):
		return "rejected for now"
	case errors.Is(err, publish.ErrNotSent):
		return "not sent"
	default:
		return "unknown"
	}
}

// Whoever reads of a missing stream has to make one.
func TestAMissingStreamIsNamed(t *testing.T) {
	t.Parallel()
	notFound := &jetstream.APIError{Code: 404, ErrorCode: jetstream.JSErrCodeStreamNotFound, Description: "words"}
	for _, c := range []struct {
		err     error
		subject string
		stream  string
		want    string
	}{
		{nats.ErrNoResponders, "shop.orders", "", `subject "shop.orders": no stream has the subject, or its leader is away`},
		{jetstream.ErrNoStreamResponse, "orders", "SHOP", `subject "orders", stream "SHOP": no stream has the subject`},
		{notFound, "orders", "SHOP", `subject "orders", stream "SHOP": another stream has the subject, or none`},
	} {
		err := naming(afterSending(c.err), c.subject, c.stream)
		if class(err) != "topic" || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.err, err, c.want)
		}
	}
	if err := naming(afterSending(nats.ErrTimeout), "orders", "SHOP"); err.Error() != nats.ErrTimeout.Error() {
		t.Errorf("another error says %v", err)
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
		{"reconnecting", beforeSending, nats.ErrReconnectBufExceeded, "topic"},
		{"disconnected before sending", beforeSending, nats.ErrDisconnected, "topic"},
		{"closed", beforeSending, nats.ErrConnectionClosed, "topic"},
		{"draining", beforeSending, nats.ErrConnectionDraining, "topic"},
		{"a server without headers", beforeSending, nats.ErrHeadersNotSupported, "topic"},
		{"a write that failed", beforeSending, errors.New("broken pipe"), "topic"},
		{"cancelled before sending", beforeSending, context.Canceled, "not sent"},

		{"no responders", afterSending, nats.ErrNoResponders, "topic"},
		{"no stream", afterSending, jetstream.ErrNoStreamResponse, "topic"},
		{"permissions", afterSending, fmt.Errorf("%w: publish to x", nats.ErrPermissionViolation), "topic"},
		{"authorization", afterSending, nats.ErrAuthorization, "topic"},
		{"credentials expired", afterSending, nats.ErrAuthExpired, "topic"},
		{"stream not found", afterSending, api(10059), "topic"},
		{"expected stream does not match", afterSending, api(10060), "topic"},
		{"JetStream not enabled", afterSending, api(10076), "topic"},
		{"JetStream not enabled for the account", afterSending, api(10039), "topic"},
		{"insufficient resources", afterSending, api(10023), "topic"},
		{"account limits", afterSending, api(10002), "topic"},
		{"insufficient storage", afterSending, api(10047), "topic"},
		{"insufficient memory", afterSending, api(10028), "topic"},
		{"full, or a disk that failed", afterSending, api(10077), "topic"},
		{"sealed", afterSending, api(10109), "topic"},
		{"offline", afterSending, api(10118), "topic"},
		{"no leader", afterSending, api(10008), "topic"},
		{"too many requests", afterSending, api(10167), "topic"},
		{"max_msg_size", afterSending, api(10054), "too_large"},
		{"headers above 64 KiB", afterSending, api(10097), "too_large"},
		{"the first copy is still being stored", afterSending, api(10158), "unknown"},
		{"a code of tomorrow", afterSending, api(19999), "unknown"},
		{"disconnected after sending", afterSending, nats.ErrDisconnected, "topic"},
		{"closed after sending", afterSending, nats.ErrConnectionClosed, "topic"},
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
