package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

func TestConsumeConfigurationSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	c, err := consumer.New(consumer.Config{Name: "compliance"}, consumer.On(outbox.Define[struct{}](outbox.Contract{
		Type: "t", Version: 1, Aggregate: "a", Topic: "t",
	}), nil), consumer.Ignore("other"))
	if err != nil {
		t.Skip(err) // a handler that is missing is the consumer's to refuse
	}
	_, err = ConsumeConfig{
		DeadLetters: "a b", Concurrency: -1, MaxAhead: -1, CommitInterval: -time.Second,
	}.withDefaults(c)
	for _, want := range []string{"Topics", "DeadLetters", "Concurrency", "CommitInterval"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing about %s in: %v", want, err)
		}
	}
	_, err = ConsumeConfig{Topics: []string{"a", "b"}, DeadLetters: "b"}.withDefaults(c)
	if err == nil || !strings.Contains(err.Error(), "its own dead letters") {
		t.Errorf("dead letters among the topics: %v", err)
	}
	config, err := ConsumeConfig{Topics: []string{"a"}, DeadLetters: "b"}.withDefaults(c)
	if err != nil || config.Group != "compliance" || config.MaxAhead != 1000 {
		t.Errorf("the defaults are %+v: %v", config, err)
	}
}
