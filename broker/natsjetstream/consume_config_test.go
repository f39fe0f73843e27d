package natsjetstream

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/consumer"
)

func TestConsumeConfigIsCheckedAllAtOnce(t *testing.T) {
	t.Parallel()
	err := ConsumeConfig{
		Stream: "a b", Durable: "billing.mailer", DeadLetters: "dead.*", Concurrency: -1,
	}.validate(nats.GetDefaultOptions())
	for _, want := range []string{
		"Stream", `Durable "billing.mailer"`, "DeadLetters", "Concurrency", "nats.MaxReconnects(-1)",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s: %v", want, err)
		}
	}
	if err := (ConsumeConfig{Stream: "EVENTS", Durable: "mailer", DeadLetters: "dead.mailer"}).validate(nats.Options{
		AllowReconnect: true, MaxReconnect: -1,
	}); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if err := Consume(t.Context(), nil, nil, ConsumeConfig{}); err == nil {
		t.Error("nothing at all was taken")
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		filter, subject string
		want            bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.c", false},
		{"a.b", "a", false},
		{"a", "a.b", false},
		{"a.*", "a.b", true},
		{"a.*", "a.b.c", false},
		{"*.b", "a.b", true},
		{"a.*", "a", false},
		{"a.>", "a.b.c", true},
		{"a.>", "a", false},
		{">", "a", true},
		{"a.*.>", "a.b", false},
	} {
		if got := matches(test.filter, test.subject); got != test.want {
			t.Errorf("%s matches %s: %t", test.filter, test.subject, got)
		}
		if receives(jetstream.ConsumerConfig{FilterSubject: test.filter}, test.subject) != test.want ||
			receives(jetstream.ConsumerConfig{FilterSubjects: []string{"other", test.filter}}, test.subject) != test.want {
			t.Errorf("%s receives %s: not %t", test.filter, test.subject, test.want)
		}
	}
	if !receives(jetstream.ConsumerConfig{}, "a") {
		t.Error("without a filter a consumer receives everything")
	}
}

// What PullConsumer makes is what the loop takes.
func TestPullConsumer(t *testing.T) {
	t.Parallel()
	c, err := consumer.New(consumer.Config{Name: "mailer"},
		consumer.OnType("a", func(context.Context, *consumer.Event) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	config := PullConsumer(c, "events.a")
	if err := checkConsumer(config); err != nil {
		t.Error(err)
	}
	if config.Durable != "mailer" || len(config.FilterSubjects) != 1 {
		t.Errorf("it is %+v", config)
	}
}
