package pubsubbroker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// answerTimeout is how long a request to make or delete a subscription may take.
	answerTimeout = 10 * time.Second
	// forgottenAfter is when Pub/Sub deletes a subscription that its owner could not delete. It takes no less.
	forgottenAfter = 24 * time.Hour
	// kept is how long it keeps what nobody fetches. It takes no less.
	kept = 10 * time.Minute
)

// What [Listen] needs and does not have.
var (
	ErrNoTopic   = errors.New("there is no such topic")
	ErrNotLetIn  = errors.New("Pub/Sub does not allow it")
	ErrNoService = errors.New("Pub/Sub does not answer")
)

// Received is a message as a subscriber gets it.
type Received struct {
	// ID is Pub/Sub's own: a message that is delivered again has the same.
	ID         string
	Topic      string
	At         time.Time
	Attributes map[string]string
	Body       []byte
}

// Listen calls each for what arrives at a topic from now on, one message at a time and in order per key, until each
// returns false or the context ends. Where the service is and how it lets us in, the keys of this package say, in an
// environment; an error is a *[config.Error] where one is missing or wrong.
//
// It makes a subscription of its own, which takes nothing away from others, and deletes it in the end. One that could
// not be deleted Pub/Sub forgets after a day. ready is called when it is there.
func Listen(ctx context.Context, environ []string, insecure bool, topic string, ready func(),
	each func(Received) bool,
) (err error) {
	subscriptions, err := Subscribe(ctx, environ, insecure, topic)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, subscriptions.Close()) }() //nolint:contextcheck // also after an interrupt
	ready()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return subscriptions.Receive(ctx, func(message Received) {
		if !each(message) {
			stop()
		}
	})
}

// subscribe makes a subscription of our own.
func subscribe(ctx context.Context, client *pubsub.Client, project, topic string) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	name = fmt.Sprintf("projects/%s/subscriptions/outboxctl-listen-%s", project, strings.ToLower(rand.Text()[:16]))
	_, err = client.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name: name, Topic: fmt.Sprintf("projects/%s/topics/%s", project, topic), EnableMessageOrdering: true,
		MessageRetentionDuration: durationpb.New(kept),
		ExpirationPolicy:         &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(forgottenAfter)},
	})
	if errors.Is(err, context.DeadlineExceeded) { // the client gave up before the service said anything
		return "", fmt.Errorf("a subscription of %s: %w", topic, ErrNoService)
	}
	switch status.Code(err) {
	case codes.OK:
		return name, nil
	case codes.NotFound:
		return "", fmt.Errorf("%s in project %s: %w", topic, project, ErrNoTopic)
	case codes.PermissionDenied, codes.Unauthenticated:
		return "", fmt.Errorf("a subscription of %s: %w: %s", topic, ErrNotLetIn, status.Convert(err).Message())
	case codes.Unavailable, codes.DeadlineExceeded:
		return "", fmt.Errorf("a subscription of %s: %w: %s", topic, ErrNoService, status.Convert(err).Message())
	default:
		return "", fmt.Errorf("a subscription of %s: %w", topic, err)
	}
}

func unsubscribe(ctx context.Context, client *pubsub.Client, name string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := client.SubscriptionAdminClient.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: name})
	if err != nil {
		return fmt.Errorf("delete the subscription %s: %w", name, err)
	}
	return nil
}
