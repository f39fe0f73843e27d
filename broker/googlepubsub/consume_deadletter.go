package googlepubsub

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/internal/clean"
)

// The attributes that a dead letter has besides the message's own.
const (
	AttributeReason       = "dead_letter_reason"
	AttributeConsumer     = "dead_letter_consumer"
	AttributeSubscription = "dead_letter_subscription"
	AttributeAttempts     = "dead_letter_attempts"
)

const (
	// maxAttributeBytes is what Pub/Sub takes as an attribute's value.
	maxAttributeBytes = 1024
	// publishTimeout is how long Pub/Sub has to take a dead letter.
	publishTimeout = 10 * time.Second
)

// deadLetter publishes a message to the dead letters and tells whether they have it. Until they do, the message is
// kept: only the end of the loop gives it back.
//
// It is a request of its own and not the library's publisher: that one holds back the messages of an ordering key after
// a failure, and must be stopped. It has the retries of the caller's client, by default those of Google's for seven
// codes, and one whose answer was lost makes a second letter of the same event.
func (l *loop) deadLetter(ctx context.Context, message *pubsub.Message, slot *slot, attempt int,
	reason string,
) bool {
	attributes := maps.Clone(message.Attributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	attributes[AttributeReason] = cut(reason)
	attributes[AttributeConsumer] = l.consumer.Name()
	attributes[AttributeSubscription] = l.config.Subscription
	attributes[AttributeAttempts] = strconv.Itoa(attempt)
	request := &pubsubpb.PublishRequest{
		Topic:    l.client.Publisher(l.config.DeadLetters).String(),
		Messages: []*pubsubpb.PubsubMessage{{Data: message.Data, Attributes: attributes, OrderingKey: message.OrderingKey}},
	}
	for try := 1; ; try++ {
		err := l.publish(ctx, request)
		if err == nil {
			return true
		}
		if status.Code(err) == codes.InvalidArgument {
			// There may be no room for more attributes, and a dead letter without a reason is better than none.
			request.Messages[0].Attributes = message.Attributes
		}
		l.consumer.Logger().LogAttrs(ctx, slog.LevelError, "a dead letter is not published, and its message is kept: see "+
			"that the topic exists and that publishing is allowed",
			slog.String("consumer", l.consumer.Name()), slog.String("topic", l.config.DeadLetters),
			slog.String("error", clean.Error(err)))
		if slot.pause(ctx, pause(try)) != nil {
			return false
		}
	}
}

// publish is not cut short by the stop of the loop: the topic may have the dead letter already.
func (l *loop) publish(ctx context.Context, request *pubsubpb.PublishRequest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	if _, err := l.client.TopicAdminClient.Publish(ctx, request); err != nil {
		return fmt.Errorf("googlepubsub: %w", err)
	}
	return nil
}

// cut makes a text fit into an attribute.
func cut(text string) string {
	if len(text) <= maxAttributeBytes {
		return text
	}
	end := maxAttributeBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
