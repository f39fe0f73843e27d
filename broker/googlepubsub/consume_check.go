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
	// Level is slog.LevelWarn for what loses events or keeps them away, slog.LevelInfo for what is good to know.
	Level slog.Level
	// Code names the finding for alerts. At LevelWarn: no_dead_letters, dead_letters_unread, dead_letters_short,
	// short_retention, detached, topic_deleted, push_or_export, not_active, retry_policy_unknown. At LevelInfo: no_order,
	// no_retry_policy, few_attempts, attempts_differ, expires, filter, exactly_once, subscription_unknown,
	// dead_letters_unknown.
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
	// deletedTopic is what a subscription says of its topic when that is deleted. A new topic of the same name is another
	// one: the subscription gets nothing of it.
	deletedTopic = "_deleted-topic_"
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
		if !config.RetryPolicy {
			findings = append(findings, Finding{
				slog.LevelWarn, "retry_policy_unknown",
				"whether the subscription has a retry policy is not known, so what fails is kept here for a while before it is " +
					"given back: set RetryPolicy if it has one, or grant pubsub.subscriptions.get, which is in roles/pubsub.viewer",
			})
		}
	} else {
		findings = append(findings, findingsOf(subscription, config, handler.MaxAttempts())...)
	}
	topics := map[string]bool{subscription.GetDeadLetterPolicy().GetDeadLetterTopic(): true}
	if config.DeadLetters != "" {
		topics[client.Publisher(config.DeadLetters).String()] = true
	}
	delete(topics, "")
	for topic := range topics {
		findings = append(findings, findingsOfLetters(ctx, client, topic)...)
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
			"the subscription has no retry policy: an event that fails stays here until it is tried again, as one of at most "+
				"%d; give the subscription one", config.MaxOutstandingMessages)
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
	return append(findings, findingsOfDelivery(subscription)...)
}

// findingsOfDelivery looks at what keeps events from the subscription, or from whoever receives.
func findingsOfDelivery(subscription *pubsubpb.Subscription) (findings []Finding) {
	add := func(level slog.Level, code, text string) { findings = append(findings, Finding{level, code, text}) }
	if subscription.GetDetached() {
		add(slog.LevelWarn, "detached", "the subscription is detached from its topic and gets nothing: create it anew")
	}
	if subscription.GetTopic() == deletedTopic {
		add(slog.LevelWarn, "topic_deleted",
			"the subscription's topic is deleted, and a new topic of the same name sends it nothing: create the subscription "+
				"anew; what was published in between is lost to it")
	}
	if exports(subscription) {
		add(slog.LevelWarn, "push_or_export",
			"the subscription pushes its messages, or exports them: nobody can receive them; create one for pull")
	}
	if state := subscription.GetState(); state != pubsubpb.Subscription_ACTIVE &&
		state != pubsubpb.Subscription_STATE_UNSPECIFIED {
		add(slog.LevelWarn, "not_active",
			"the subscription's state is "+state.String()+": Pub/Sub does not deliver; see what its page in the console says")
	}
	if filter := subscription.GetFilter(); filter != "" {
		add(slog.LevelInfo, "filter",
			"the subscription has a filter, and what does not match is acknowledged by Pub/Sub and never comes: see that "+
				"every type with a handler passes, also the next one, for a filter cannot be changed")
	}
	if subscription.GetEnableExactlyOnceDelivery() {
		add(slog.LevelInfo, "exactly_once",
			"the subscription has exactly-once delivery: it does not know the copies that a publisher sends, and the inbox "+
				"does, so it costs time and throughput and adds nothing; turn it off")
	}
	return findings
}

// exports tells whether Pub/Sub takes the messages elsewhere by itself.
func exports(subscription *pubsubpb.Subscription) bool {
	return subscription.GetPushConfig().GetPushEndpoint() != "" || subscription.GetBigqueryConfig() != nil ||
		subscription.GetCloudStorageConfig() != nil || subscription.GetBigtableConfig() != nil
}

// findingsOfLetters looks whether anybody keeps the dead letters, and for how long: a topic without a subscription
// throws them away, and a subscription as one gets it does so after a week.
func findingsOfLetters(ctx context.Context, client *pubsub.Client, topic string) []Finding {
	longest := time.Duration(-1)
	subscriptions := client.TopicAdminClient.ListTopicSubscriptions(ctx,
		&pubsubpb.ListTopicSubscriptionsRequest{Topic: topic})
	for {
		name, err := subscriptions.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		var subscription *pubsubpb.Subscription
		if err == nil {
			subscription, err = client.SubscriptionAdminClient.GetSubscription(ctx,
				&pubsubpb.GetSubscriptionRequest{Subscription: name})
		}
		switch {
		case status.Code(err) == codes.NotFound && name == "":
			return []Finding{{
				slog.LevelWarn, "dead_letters_unread",
				"the topic of the dead letters, " + topic + ", does not exist: create it, and a subscription",
			}}
		case status.Code(err) == codes.NotFound: // deleted in between
		case err != nil:
			return []Finding{{
				slog.LevelInfo, "dead_letters_unknown",
				fmt.Sprintf("whether the topic of the dead letters, %s, has a subscription, and how long that keeps them, is "+
					"not known (%s): see to it", topic, status.Code(err)),
			}}
		default:
			longest = max(longest, retentionOf(subscription))
		}
	}
	return findingsOfRetention(topic, longest)
}

// findingsOfRetention judges the longest retention of the dead letters' subscriptions; it is negative if there is none.
func findingsOfRetention(topic string, longest time.Duration) []Finding {
	switch {
	case longest < 0:
		return []Finding{{
			slog.LevelWarn, "dead_letters_unread",
			"the topic of the dead letters, " + topic + ", has no subscription, so what is sent there is lost: create one",
		}}
	case longest <= usualRetention:
		return []Finding{{
			slog.LevelWarn, "dead_letters_short",
			fmt.Sprintf("the dead letters of %s are kept for %s: then they are lost, read or not; set "+
				"message_retention_duration of a subscription to 31 days", topic, longest),
		}}
	default:
		return nil
	}
}

func retentionOf(subscription *pubsubpb.Subscription) time.Duration {
	if retention := subscription.GetMessageRetentionDuration(); retention != nil {
		return retention.AsDuration()
	}
	return usualRetention
}
