package googlepubsub

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

func newConsumer(t *testing.T, handle consumer.Handler) *consumer.Consumer {
	t.Helper()
	c, err := consumer.New(consumer.Config{Name: "compliance", Logger: slog.New(slog.DiscardHandler)},
		consumer.OnType("order_placed", handle))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func nothing(context.Context, *consumer.Event) error { return nil }

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	err := Consume(t.Context(), nil, nil, ConsumeConfig{
		Subscription: "a b", Concurrency: -1, DeadLetters: "projects/p/subscriptions/s", MaxOutstandingBytes: -1,
		MaxOutstandingMessages: -1, Streams: -1, MaxExtension: -1, FlushTimeout: -1,
	})
	for _, part := range []string{
		"no client", "no consumer", "Subscription", "Concurrency", "DeadLetters", "MaxOutstandingBytes",
		"MaxOutstandingMessages", "Streams", "MaxExtension", "FlushTimeout",
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s is not in %v", part, err)
		}
	}
	client, handler := &pubsub.Client{}, newConsumer(t, nothing)
	for _, name := range []string{"abc", "projects/p/subscriptions/abc"} {
		config, err := ConsumeConfig{Subscription: name}.withDefaults(client, handler)
		if err != nil || config.Concurrency != 16 {
			t.Errorf("%s: %+v, %v", name, config, err)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		config ConsumeConfig
		want   pubsub.ReceiveSettings
		wrong  string
	}{
		"defaults": {ConsumeConfig{}, pubsub.ReceiveSettings{
			MaxExtension: time.Hour, MinDurationPerAckExtension: time.Minute, MaxDurationPerAckExtension: time.Minute,
			MaxOutstandingMessages: 160, MaxOutstandingBytes: 64 << 20, NumGoroutines: 1,
		}, ""},
		"others": {
			ConsumeConfig{
				Concurrency: 3, MaxOutstandingMessages: 5, MaxOutstandingBytes: 7, Streams: 2, Lease: 10 * time.Second,
				MaxExtension: time.Minute,
			},
			pubsub.ReceiveSettings{
				MaxExtension: time.Minute, MinDurationPerAckExtension: 10 * time.Second,
				MaxDurationPerAckExtension: 10 * time.Second, MaxOutstandingMessages: 5, MaxOutstandingBytes: 7, NumGoroutines: 2,
			},
			"",
		},
		"a lease too short":    {ConsumeConfig{Lease: 9 * time.Second}, pubsub.ReceiveSettings{}, "Lease is 9s"},
		"a lease too long":     {ConsumeConfig{Lease: 601 * time.Second}, pubsub.ReceiveSettings{}, "Lease is 10m1s"},
		"a lease of parts":     {ConsumeConfig{Lease: 10500 * time.Millisecond}, pubsub.ReceiveSettings{}, "whole seconds"},
		"less than its lease":  {ConsumeConfig{MaxExtension: time.Second}, pubsub.ReceiveSettings{}, "MaxExtension is 1s"},
		"less than its places": {ConsumeConfig{MaxOutstandingMessages: 15}, pubsub.ReceiveSettings{}, "cannot be less"},
	} {
		test.config.Subscription = "compliance"
		config, err := test.config.withDefaults(&pubsub.Client{}, newConsumer(t, nothing))
		switch {
		case test.wrong == "" && err != nil, test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
			t.Errorf("%s: %v", what, err)
		case err == nil && config.settings() != test.want:
			t.Errorf("%s: got %+v, want %+v", what, config.settings(), test.want)
		}
	}
}

// What waits for its ordering key is called after the stop as well, and then it is too late to begin.
func TestNothingBeginsAfterTheStop(t *testing.T) {
	t.Parallel()
	called := false
	l := &loop{
		consumer: newConsumer(t, func(context.Context, *consumer.Event) error { called = true; return nil }),
		places:   make(chan struct{}, 1),
	}
	message := &pubsub.Message{
		Attributes: map[string]string{"event_id": outbox.NewID().String(), "event_type": "order_placed"},
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for range 50 { // the place is free: it is by chance which of two the first select sees
		l.handle(ctx, message)
	}
	if called {
		t.Error("a handler was called after the stop")
	}
	l.handle(t.Context(), message)
	if !called {
		t.Error("no handler was called before the stop either")
	}
}

func TestWhatASubscriptionSaysOfItself(t *testing.T) {
	t.Parallel()
	good := func() *pubsubpb.Subscription {
		return &pubsubpb.Subscription{
			Topic: "projects/p/topics/orders", State: pubsubpb.Subscription_ACTIVE, PushConfig: &pubsubpb.PushConfig{},
			EnableMessageOrdering: true, RetryPolicy: &pubsubpb.RetryPolicy{}, ExpirationPolicy: &pubsubpb.ExpirationPolicy{},
			DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{
				DeadLetterTopic: "projects/p/topics/dead", MaxDeliveryAttempts: 10,
			},
			MessageRetentionDuration: durationpb.New(usualRetention),
		}
	}
	for want, change := range map[string]func(*pubsubpb.Subscription){
		"":                             func(*pubsubpb.Subscription) {},
		"no_dead_letters":              func(s *pubsubpb.Subscription) { s.DeadLetterPolicy = nil },
		"few_attempts attempts_differ": func(s *pubsubpb.Subscription) { s.DeadLetterPolicy.MaxDeliveryAttempts = 5 },
		"attempts_differ":              func(s *pubsubpb.Subscription) { s.DeadLetterPolicy.MaxDeliveryAttempts = 100 },
		"no_retry_policy":              func(s *pubsubpb.Subscription) { s.RetryPolicy = nil },
		"no_order":                     func(s *pubsubpb.Subscription) { s.EnableMessageOrdering = false },
		"short_retention": func(s *pubsubpb.Subscription) {
			s.MessageRetentionDuration = durationpb.New(usualRetention - 1)
		},
		"expires":       func(s *pubsubpb.Subscription) { s.ExpirationPolicy.Ttl = durationpb.New(24 * time.Hour) },
		"detached":      func(s *pubsubpb.Subscription) { s.Detached = true },
		"topic_deleted": func(s *pubsubpb.Subscription) { s.Topic = "_deleted-topic_" },
		"push_or_export": func(s *pubsubpb.Subscription) {
			s.PushConfig = &pubsubpb.PushConfig{PushEndpoint: "https://example.com"}
		},
		"push_or_export not_active": func(s *pubsubpb.Subscription) {
			s.BigqueryConfig, s.State = &pubsubpb.BigQueryConfig{}, pubsubpb.Subscription_RESOURCE_ERROR
		},
		"filter":       func(s *pubsubpb.Subscription) { s.Filter = `attributes.event_type = "order_placed"` },
		"exactly_once": func(s *pubsubpb.Subscription) { s.EnableExactlyOnceDelivery = true },
	} {
		subscription := good()
		change(subscription)
		var codes []string
		for _, finding := range findingsOf(subscription, ConsumeConfig{Concurrency: 16}, 10) {
			codes = append(codes, finding.Code)
			keeps := slices.Contains([]string{
				"no_dead_letters", "short_retention", "detached", "topic_deleted", "push_or_export", "not_active",
			}, finding.Code)
			if (finding.Level == slog.LevelWarn) != keeps || strings.Contains(finding.Text, "%!") {
				t.Errorf("%+v", finding)
			}
		}
		if got := strings.Join(codes, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	bare := findingsOf(&pubsubpb.Subscription{EnableMessageOrdering: true, RetryPolicy: &pubsubpb.RetryPolicy{}},
		ConsumeConfig{DeadLetters: "dead"}, 10)
	if len(bare) > 0 {
		t.Errorf("with dead letters of the loop's own: %+v", bare)
	}
}

func TestHowLongDeadLettersAreKept(t *testing.T) {
	t.Parallel()
	for longest, want := range map[time.Duration]string{
		-1: "dead_letters_unread", usualRetention: "dead_letters_short", 31 * 24 * time.Hour: "",
		retentionOf(&pubsubpb.Subscription{}): "dead_letters_short",
	} {
		findings := findingsOfRetention("projects/p/topics/dead", longest)
		if got := append(findings, Finding{})[0]; got.Code != want || want != "" && got.Level != slog.LevelWarn {
			t.Errorf("%s: got %+v, want %q", longest, got, want)
		}
	}
}

func TestAReasonFitsIntoAnAttribute(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "short", strings.Repeat("a", 1024), strings.Repeat("a", 1025), strings.Repeat("a", 1023) + "é",
		strings.Repeat("語", 1000),
	} {
		got := cut(text)
		if len(got) > maxAttributeBytes || !utf8.ValidString(got) || !strings.HasPrefix(text, got) ||
			len(text) <= maxAttributeBytes && got != text || len(text)-len(got) > 0 && len(got) < maxAttributeBytes-3 {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
	}
}

func TestPausesGrow(t *testing.T) {
	t.Parallel()
	var got []string
	for try := 1; try <= 8; try++ {
		got = append(got, fmt.Sprint(pause(try)))
	}
	if want := "1s 2s 4s 8s 16s 30s 30s 30s"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}
