// Package settings is the marketplace's configuration beside that of the publisher: its topics, what its workers
// need, and the names under which its deployments already know all of it.
package settings

import (
	"errors"
	"time"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
)

// The keys of the publisher: topics besides the domain's, which is daemon.TopicDefault.
var (
	TopicAnalytics = config.Text("topic.analytics", config.Spec[string]{
		Default: "analytics", Doc: "The topic of what is counted.",
	})
	TopicNotifications = config.Text("topic.notifications", config.Spec[string]{
		Default: "notifications", Doc: "The topic of what is sent to people.",
	})
	TopicBilling = config.Text("topic.billing", config.Spec[string]{Default: "billing", Doc: "The topic of money."})
)

// The keys of the workers. The publisher takes them too, so that one environment serves both.
var (
	InboxSubscription = config.Text("inbox.subscription", config.Spec[string]{
		Default: "pf-domain-events-sub",
		Doc:     "The subscription of the domain topic that the workers read. The publisher does not use it.",
	})
	InboxTTL = config.Duration("inbox.ttl", config.Spec[time.Duration]{
		Default: 720 * time.Hour, Check: positive,
		Doc: "How long a worker remembers that it has handled an event. The publisher does not use it.",
	})
)

// Keys are all of them.
var Keys = []config.AnyKey{TopicAnalytics, TopicNotifications, TopicBilling, InboxSubscription, InboxTTL}

// Aliases are the marketplace's variables, and what each of them sets.
var Aliases = []config.Alias{
	{Variable: "PACKFINDERZ_OUTBOX_PUBLISH_BATCH_SIZE", Key: "relay.batch"},
	{Variable: "PACKFINDERZ_OUTBOX_PUBLISH_POLL_MS", Key: "relay.poll", Unit: time.Millisecond},
	{Variable: "PACKFINDERZ_OUTBOX_MAX_ATTEMPTS", Key: "relay.max_attempts"},
	{Variable: "PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS", Key: "inbox.ttl", Unit: time.Hour},
	{Variable: "PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL", Key: "inbox.ttl"},
	{Variable: "PACKFINDERZ_PUBSUB_DOMAIN_TOPIC", Key: "topic.default"},
	{Variable: "PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION", Key: "inbox.subscription"},
}

// Defaults are what the marketplace wants where nothing is set.
var Defaults = map[string]string{"broker": "pubsub", "relay.batch": "50", "topic.default": "pf-domain-events"}

// Topics are the names of the topics in this deployment.
func Topics(values *config.Values) events.Topics {
	return events.Topics{
		Domain: daemon.TopicDefault.Get(values), Analytics: TopicAnalytics.Get(values),
		Notifications: TopicNotifications.Get(values), Billing: TopicBilling.Get(values),
	}
}

func positive(time time.Duration) error {
	if time <= 0 {
		return errors.New("must be more than nothing")
	}
	return nil
}
