package main

import (
	"context"
	"errors"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
)

// pubsubVariables are the daemon's, for where Pub/Sub is and how it lets us in.
var pubsubVariables = []string{
	"POSTHASTE_PUBSUB_PROJECT", "POSTHASTE_PUBSUB_ENDPOINT", "POSTHASTE_PUBSUB_CREDENTIALS_FILE",
	"POSTHASTE_PUBSUB_IMPERSONATE", "POSTHASTE_PUBSUB_QUOTA_PROJECT", "POSTHASTE_PUBSUB_UNIVERSE_DOMAIN",
}

// pubsub listens to a topic of Google Pub/Sub.
func (c *listenCommand) pubsub(ctx context.Context, ready func(), each func(dev.Delivered) bool) error {
	if c.since != 0 {
		return usageError{"--since: Pub/Sub shows a new subscription only what comes from then on"}
	}
	err := pubsubbroker.Listen(ctx, c.environ(pubsubVariables), c.insecure("pubsub"), c.topic, ready,
		func(message pubsubbroker.Received) bool {
			return each(received(c.topic, message.At, message.Attributes, message.Body))
		})
	return pubsubProblem(err, c.topic)
}

// pubsubProblem says what to do about an error of Pub/Sub.
func pubsubProblem(err error, topic string) error {
	switch {
	case errors.Is(err, pubsubbroker.ErrNoTopic):
		return problem{
			code: "no_topic", exit: exitNotFound, err: err,
			hint: "create it, for instance with 'gcloud pubsub topics create " + topic + "', or look at " +
				"POSTHASTE_PUBSUB_PROJECT",
		}
	case errors.Is(err, pubsubbroker.ErrNotLetIn):
		return problem{
			code: "broker_permission_denied", exit: exitNotLetIn, err: err,
			hint: "this makes a subscription of its own: give the account roles/pubsub.editor, or let somebody else do it",
		}
	case errors.Is(err, pubsubbroker.ErrNoService):
		return problem{
			code: "broker_not_connected", exit: exitFailed, err: err,
			hint: "is it up, and does POSTHASTE_PUBSUB_ENDPOINT lead to it?",
		}
	}
	return err
}
