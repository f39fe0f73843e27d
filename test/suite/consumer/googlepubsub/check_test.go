package googlepubsub_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func (w *env) findings(t *testing.T, config googlepubsub.ConsumeConfig) string {
	t.Helper()
	config.Subscription = name
	findings, err := googlepubsub.CheckSubscription(testContext(t), w.client,
		w.consumer(t, consumer.Config{}, consumer.On(placed, never(t))), config)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, finding := range findings {
		codes = append(codes, finding.Code)
		if finding.Text == "" {
			t.Errorf("%s says nothing", finding.Code)
		}
	}
	slices.Sort(codes)
	return strings.Join(codes, " ")
}

// The emulator keeps nothing for longer than a week, so dead_letters_short is found everywhere.
func TestCheck(t *testing.T) {
	t.Parallel()
	good := recommended()
	good.DeadLetterPolicy.MaxDeliveryAttempts = 10
	good.ExpirationPolicy = &pb.ExpirationPolicy{}
	short := recommended()
	short.DeadLetterPolicy.MaxDeliveryAttempts = 20
	short.MessageRetentionDuration = durationpb.New(time.Hour)
	short.ExpirationPolicy = &pb.ExpirationPolicy{Ttl: durationpb.New(24 * time.Hour)}
	pushed := proto.CloneOf(good)
	pushed.PushConfig = &pb.PushConfig{PushEndpoint: "https://example.com/events"}
	filtered := proto.CloneOf(good)
	filtered.Filter = `attributes.event_type = "order_placed"`
	filtered.EnableExactlyOnceDelivery = true
	for what, test := range map[string]struct {
		subscription *pb.Subscription
		deadLetters  string
		want         string
	}{
		"good":                  {good, "", "dead_letters_short"},
		"bare":                  {bare(), "", "no_dead_letters no_order no_retry_policy"},
		"bare and dead letters": {bare(), dead, "dead_letters_short no_order no_retry_policy"},
		"dead letters nowhere":  {bare(), "nowhere", "dead_letters_unread no_order no_retry_policy"},
		"few attempts":          {recommended(), "", "attempts_differ dead_letters_short few_attempts"},
		"short":                 {short, "", "attempts_differ dead_letters_short expires short_retention"},
		"pushed":                {pushed, "", "dead_letters_short push_or_export"},
		"filtered":              {filtered, "", "dead_letters_short exactly_once filter"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if got := newEnv(t, test.subscription).findings(t,
				googlepubsub.ConsumeConfig{DeadLetters: test.deadLetters}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A topic that nobody reads throws dead letters away.
func TestCheckUnreadDeadLetters(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	if err := w.client.SubscriptionAdminClient.DeleteSubscription(testContext(t),
		&pb.DeleteSubscriptionRequest{Subscription: subscriptionName(dead)}); err != nil {
		t.Fatal(err)
	}
	if got := w.findings(t, googlepubsub.ConsumeConfig{}); got != "attempts_differ dead_letters_unread few_attempts" {
		t.Errorf("got %q", got)
	}
}

// A topic that was deleted and created anew has nothing to do with the subscription of the one before.
func TestCheckATopicThatWasCreatedAnew(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	if err := w.client.TopicAdminClient.DeleteTopic(testContext(t),
		&pb.DeleteTopicRequest{Topic: topicName(orders)}); err != nil {
		t.Fatal(err)
	}
	w.createTopic(t, orders)
	if got := w.findings(t, googlepubsub.ConsumeConfig{}); got !=
		"attempts_differ dead_letters_short few_attempts topic_deleted" {
		t.Errorf("got %q", got)
	}
}

// Who may receive and not ask is told so, and receives.
func TestCheckIsNotAllowed(t *testing.T) {
	t.Parallel()
	w := newEnv(t, recommended())
	for _, method := range []string{"GetSubscription", "ListTopicSubscriptions"} {
		w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindError, Code: "PERMISSION_DENIED", Method: method})
	}
	for want, config := range map[string]googlepubsub.ConsumeConfig{
		"dead_letters_unknown retry_policy_unknown subscription_unknown": {DeadLetters: dead},
		"dead_letters_unknown subscription_unknown":                      {DeadLetters: dead, RetryPolicy: true},
	} {
		if got := w.findings(t, config); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	log := &records{}
	stop := w.run(t, w.consumer(t, consumer.Config{Logger: log.logger()}, consumer.On(placed, failing("", nil))),
		googlepubsub.ConsumeConfig{})
	w.publish(t, newMessage("a", 1))
	eventually.True(t, "it is handled", func() bool { return w.outcomes.count(consumer.Handled, "a") == 1 })
	stop()
	if !log.has("subscription_unknown") {
		t.Error("the log does not tell")
	}
}

func TestCheckOfAMissingSubscription(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	_, err := googlepubsub.CheckSubscription(testContext(t), w.client,
		w.consumer(t, consumer.Config{}, consumer.On(placed, never(t))), googlepubsub.ConsumeConfig{Subscription: name})
	if status.Code(err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
}
