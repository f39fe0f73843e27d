package pubsubbroker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
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
	set := config.Set{Prefix: "POSTHASTE_", Keys: keys(), Check: func(values *config.Values) []config.Problem {
		return check(values, insecure)
	}}
	values, err := set.Load(nil, environ)
	if err != nil {
		return err
	}
	dial, err := clientOptions(ctx, values, daemon.Options{
		Insecure: insecure, UserAgent: "posthaste-outboxctl", Logger: slog.New(slog.DiscardHandler),
	}, answerTimeout)
	if err != nil {
		return err
	}
	client, err := pubsub.NewClient(context.WithoutCancel(ctx), project.Get(values), dial...)
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	name, err := subscribe(ctx, client, project.Get(values), topic)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unsubscribe(context.WithoutCancel(ctx), client, name)) }()
	ready()
	return receive(ctx, client.Subscriber(name), each)
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

// receive hands over what comes, one message at a time.
func receive(ctx context.Context, subscriber *pubsub.Subscriber, each func(Received) bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var turn sync.Mutex
	done := false
	err := subscriber.Receive(ctx, func(_ context.Context, message *pubsub.Message) {
		turn.Lock()
		defer turn.Unlock()
		message.Ack()
		if done || ctx.Err() != nil {
			return
		}
		if done = !each(Received{At: message.PublishTime, Attributes: message.Attributes, Body: message.Data}); done {
			stop()
		}
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("receive: %w", err)
	}
	return nil
}
