package googlepubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/consumer"
)

// A Finding is something about a subscription that an operator should know before events come.
type Finding struct {
	// Level is slog.LevelWarn for what loses events, slog.LevelInfo for what is good to know.
	Level slog.Level
	// Code names the finding for alerts: no_dead_letters, dead_letters_unread, short_retention, detached, no_order,
	// no_retry_policy, few_attempts, attempts_differ, expires, subscription_unknown, dead_letters_unknown.
	Code string
	// Text says what it is and what to do.
	Text string
}

const (
	queryTimeout = 10 * time.Second
	// enoughAttempts survives some restarts of the consumer: Pub/Sub counts those too.
	enoughAttempts = 10
	// usualRetention is what Pub/Sub gives who asks for nothing.
	usualRetention = 7 * 24 * time.Hour
)

// CheckSubscription asks how the subscription is set up, and where its dead letters go. [Consume] does it when it
// starts and logs what it finds; none of it is a reason not to start. An error means that it could not be asked: an
// outage, or there is none.
//
// The ack deadline does not matter: the client library sets one of its own for every message.
func CheckSubscription(ctx context.Context, client *pubsub.Client, handler *consumer.Consumer,
	config ConsumeConfig,
) ([]Finding, error) {
	config, err := config.withDefaults(client, handler)
	if err != nil {
		return nil, err
	}
	_, findings, err := check(ctx, client, handler, config)
	return findings, err
}

// check returns the subscription too, if it may be asked for.
func check(ctx context.Context, client *pubsub.Client, handler *consumer.Consumer,
	config ConsumeConfig,
) (*pubsubpb.Subscription, []Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	name := client.Subscriber(config.Subscription).String()
	subscription, err := client.SubscriptionAdminClient.GetSubscription(ctx,
		&pubsubpb.GetSubscriptionRequest{Subscription: name})
	if comesBack(err) {
		return nil, nil, fmt.Errorf("googlepubsub: the subscription %s: %w", name, err)
	}
	var findings []Finding
	if err != nil {
		findings = append(findings, Finding{
			slog.LevelInfo, "subscription_unknown",
			fmt.Sprintf("how the subscription is set up is not known (%s: grant pubsub.subscriptions.get to be told): see "+
				"that it has a dead-letter policy, a retry policy, message ordering and 7 days of retention",
				status.Code(err)),
		})
	} else {
		findings = append(findings, findingsOf(subscription, config, handler.MaxAttempts())...)
	}
	topics := map[string]bool{subscription.GetDeadLetterPolicy().GetDeadLetterTopic(): true}
	if config.DeadLetters != "" {
		topics[client.Publisher(config.DeadLetters).String()] = true
	}
	delete(topics, "")
	for topic := range topics {
		findings = append(findings, deadLettersUnread(ctx, client, topic)...)
	}
	return subscription, findings, nil
}

// comesBack tells of errors after which it is worth to ask again: somebody ends the outage, or creates what is missing.
func comesBack(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	switch status.Code(err) {
	case codes.NotFound, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	default:
		return false
	}
}

// findingsOf looks at what a subscription says of itself.
func findingsOf(subscription *pubsubpb.Subscription, config ConsumeConfig, maxAttempts int) (findings []Finding) {
	add := func(level slog.Level, code, format string, args ...any) {
		findings = append(findings, Finding{level, code, fmt.Sprintf(format, args...)})
	}
	policy := subscription.GetDeadLetterPolicy()
	attempts := int(policy.GetMaxDeliveryAttempts())
	if policy == nil && config.DeadLetters == "" {
		add(slog.LevelWarn, "no_dead_letters",
			"the subscription has no dead-letter policy: what cannot be handled comes again every minute until its retention "+
				"is over, and is lost; give it one, or set DeadLetters")
	}
	if policy != nil && attempts < enoughAttempts {
		add(slog.LevelInfo, "few_attempts",
			"the dead-letter policy takes an event after %d deliveries, and restarts of the consumer, what fails in a short "+
				"outage and what old versions give back count: set max_delivery_attempts to %d or more", attempts, enoughAttempts)
	}
	if policy != nil && attempts != maxAttempts {
		add(slog.LevelInfo, "attempts_differ",
			"the dead-letter policy takes an event after %d deliveries, and the consumer calls it poisoned after %d: set "+
				"MaxAttempts to what the policy says, so that its log and metrics tell of every dead letter",
			attempts, maxAttempts)
	}
	if subscription.GetRetryPolicy() == nil {
		add(slog.LevelInfo, "no_retry_policy",
			"the subscription has no retry policy: an event that fails takes one of %d places here until it is tried again; "+
				"give the subscription one", config.Concurrency)
	}
	if !subscription.GetEnableMessageOrdering() {
		add(slog.LevelInfo, "no_order",
			"the subscription has no message ordering: events of one aggregate are handled in any order, and at the same "+
				"time; it can be had only when a subscription is created")
	}
	if retention := subscription.GetMessageRetentionDuration(); retention != nil &&
		retention.AsDuration() < usualRetention {
		add(slog.LevelWarn, "short_retention",
			"the subscription keeps an event for %s: when the consumer is away for longer, events are lost; set "+
				"message_retention_duration to 7 days or more", retention.AsDuration())
	}
	if ttl := subscription.GetExpirationPolicy().GetTtl(); ttl != nil && ttl.AsDuration() > 0 {
		add(slog.LevelInfo, "expires",
			"Pub/Sub deletes the subscription when nobody has received for %s, with all its events: set its expiration to never",
			ttl.AsDuration())
	}
	if subscription.GetDetached() {
		add(slog.LevelWarn, "detached", "the subscription is detached from its topic and gets nothing: create it anew")
	}
	return findings
}

// deadLettersUnread looks whether anybody keeps the dead letters: a topic without a subscription throws them away.
func deadLettersUnread(ctx context.Context, client *pubsub.Client, topic string) []Finding {
	_, err := client.TopicAdminClient.ListTopicSubscriptions(ctx, &pubsubpb.ListTopicSubscriptionsRequest{
		Topic: topic, PageSize: 1,
	}).Next()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, iterator.Done):
		return []Finding{
			{
				slog.LevelWarn, "dead_letters_unread",
				"the topic of the dead letters, " + topic + ", has no subscription, so what is sent there is lost: create one",
			},
		}
	case status.Code(err) == codes.NotFound:
		return []Finding{
			{
				slog.LevelWarn, "dead_letters_unread",
				"the topic of the dead letters, " + topic + ", does not exist: create it, and a subscription",
			},
		}
	default:
		return []Finding{{
			slog.LevelInfo, "dead_letters_unknown",
			fmt.Sprintf("whether the topic of the dead letters, %s, has a subscription is not known (%s): see to it", topic,
				status.Code(err)),
		}}
	}
}
