package googlepubsub

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// settled is how long the loop must have received until what went wrong before counts no more.
const settled = time.Minute

// Consume handles a subscription's messages until ctx ends, and returns nil when all that it had begun is through: at
// the latest after the consumer's Deadline and some seconds. An error is about the arguments, or the client was closed;
// nothing else is one.
//
// Whatever Pub/Sub answers is logged and tried again, also a subscription that does not exist and a permission that is
// missing. Somebody creates the one and grants the other while this runs, and a program that ended instead would have
// to be started again by hand, or would be, over and over, with all the work of a start.
//
// The client stays the caller's. If the loop stops while Pub/Sub cannot be reached, the client library goes on with
// opening a stream until Pub/Sub is back, or the client has been closed for half a minute.
func Consume(ctx context.Context, client *pubsub.Client, handler *consumer.Consumer, config ConsumeConfig) error {
	config, err := config.withDefaults(client, handler)
	if err != nil {
		return err
	}
	l := &loop{client: client, consumer: handler, config: config, places: make(chan struct{}, config.Concurrency)}
	for failures := 1; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := l.inspect(ctx)
		if err == nil {
			err = l.receive(ctx)
		}
		if time.Since(began) > settled {
			failures = 1
		}
		if ctx.Err() == nil {
			if closed(client) {
				return errClosed
			}
			l.complain(ctx, err)
		}
		_ = wait.For(ctx, pause(failures)) // the loop looks whether it is over
	}
	return nil
}

var errClosed = errors.New("googlepubsub: the client was closed, and with it the loop: end the context first")

func closed(client *pubsub.Client) bool {
	connection := client.SubscriptionAdminClient.Connection() //nolint:staticcheck // any of its connections will do
	return connection.GetState() == connectivity.Shutdown
}

// loop is one Run.
type loop struct {
	client   *pubsub.Client
	consumer *consumer.Consumer
	config   ConsumeConfig
	// places are for messages that are being handled. One that waits, or is not handled any more because the loop stops,
	// needs none.
	places chan struct{}
	// asked tells that the findings of the check were logged.
	asked bool
	// retries tells that the subscription has a retry policy: Pub/Sub decides when a failed message comes again.
	retries bool
}

// inspect learns how the subscription is set up. Whoever may not ask receives all the same.
func (l *loop) inspect(ctx context.Context) error {
	subscription, findings, err := check(ctx, l.client, l.consumer, l.config)
	if err != nil {
		return err
	}
	l.retries = subscription.GetRetryPolicy() != nil || subscription == nil && l.config.RetryPolicy
	if !l.asked {
		l.asked = true
		for _, finding := range findings {
			l.consumer.Logger().LogAttrs(ctx, finding.Level, "the check of the subscription",
				slog.String("consumer", l.consumer.Name()),
				slog.String("subscription", l.config.Subscription), slog.String("code", finding.Code),
				slog.String("finding", finding.Text))
		}
	}
	return nil
}

// receive handles messages until ctx ends or the client library gives up.
func (l *loop) receive(ctx context.Context) error {
	subscriber := l.client.Subscriber(l.config.Subscription)
	subscriber.ReceiveSettings = l.config.settings()
	ended := make(chan error, 1)
	go func() { ended <- subscriber.Receive(ctx, l.handle) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	for range cap(l.places) {
		l.places <- struct{}{} // nothing is being handled any more
	}
	patience := time.NewTimer(l.config.FlushTimeout)
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-patience.C:
		l.consumer.Logger().WarnContext(ctx,
			"the last acknowledgements may not have reached Pub/Sub: what they were for comes again",
			slog.String("consumer", l.consumer.Name()), slog.String("subscription", l.config.Subscription))
		return nil
	}
}

// complain logs why nothing is received: as an error where it lasts until somebody does something.
func (l *loop) complain(ctx context.Context, err error) {
	if err == nil {
		err = errors.New("googlepubsub: the stream ended")
	}
	level, todo := slog.LevelError, "nothing: it is tried again"
	switch status.Code(err) {
	case codes.NotFound:
		todo = "create the subscription, or correct ConsumeConfig.Subscription"
	case codes.PermissionDenied:
		todo = "grant roles/pubsub.subscriber on the subscription, and roles/pubsub.viewer so that the loop is told of its " +
			"retry policy, or set ConsumeConfig.RetryPolicy"
	case codes.Unauthenticated:
		todo = "give the client credentials that are valid"
	case codes.FailedPrecondition, codes.InvalidArgument, codes.Unimplemented:
		todo = "see that the subscription is not detached and is for pull, and that what answers is Pub/Sub"
	default:
		level = slog.LevelWarn
	}
	l.consumer.Logger().LogAttrs(ctx, level, "nothing is received", slog.String("consumer", l.consumer.Name()),
		slog.String("subscription", l.config.Subscription), slog.String("error", clean.Error(err)), slog.String("todo", todo))
}

// pause is a second, and then twice as long each time, up to half a minute.
func pause(try int) time.Duration {
	return min(time.Second<<min(try-1, 5), 30*time.Second)
}
