package relay

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// twoTopics is a configuration of the topics orders and invoices.
func twoTopics(t testing.TB) Config {
	t.Helper()
	registry, err := outbox.NewRegistry(
		outbox.Define[struct{}](outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: "orders"}),
		outbox.Define[struct{}](outbox.Contract{Type: "invoice_sent", Aggregate: "order", Topic: "invoices"}))
	if err != nil {
		t.Fatal(err)
	}
	config := complete(t)
	config.Registry = registry
	config.Lease = time.Hour // as newTestSender
	return config
}

// Each topic goes to its own publisher, and only what goes to a pipeliner is pipelined: what is sent again to a topic
// that no contract has goes to the one of all others.
func TestTopicsHaveTheirPublishers(t *testing.T) {
	t.Parallel()
	var plain []string
	var mutex sync.Mutex
	pipelined := &willing{}
	config := twoTopics(t)
	config.Publisher = publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
		mutex.Lock()
		defer mutex.Unlock()
		plain = append(plain, message.Topic)
		return nil
	})
	config.Publishers = map[string]publish.Publisher{"orders": pipelined}
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan result, 8)
	s := newSender(t.Context(), &r.config, newClock(), &sync.WaitGroup{}, results)
	for topic, want := range map[string]int{"orders": 8, "invoices": 1, "elsewhere": 1} {
		if depth := s.depth(topic); depth != want {
			t.Errorf("%s: depth %d, want %d", topic, depth, want)
		}
		p := stored()
		p.Topic, p.DecidedAt, p.First = topic, s.clock.now(), true
		s.send([]*core.Publish{p})
		if result := <-results; result.publish != p || result.outcome.Class != core.Acknowledged {
			t.Errorf("%s: %+v", topic, result.outcome)
		}
		if topic == "orders" && (len(pipelined.got) != 1 || pipelined.got[0] != p.Event.ID) {
			t.Errorf("the pipeliner got %v, want %v", pipelined.got, p.Event.ID)
		}
	}
	mutex.Lock()
	defer mutex.Unlock()
	if len(plain) != 2 || strings.Contains(strings.Join(plain, " "), "orders") || len(pipelined.got) != 1 {
		t.Errorf("the plain one got %v, the pipeliner %d", plain, len(pipelined.got))
	}
}

func TestInvalidPublishersAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	config := twoTopics(t)
	config.Publisher = nil
	config.Publishers = map[string]publish.Publisher{
		"order": quiet, "orders": publish.PublisherFunc(nil), "invoices": nil,
	}
	_, err := New(config)
	for _, want := range []string{
		`Publishers: topic "order": no contract has it; those that are: invoices, orders`,
		`the publisher of the topic "orders" is a nil publish.PublisherFunc`,
		`the publisher of the topic "invoices" is missing: give a broker's publisher`,
		"the Publisher is missing: give a broker's publisher",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s: %v", want, err)
		}
	}
}

// Handlers in the relay's own process need those of the types that go to them, and no others.
func TestHandlersOfATopicTakeItsTypes(t *testing.T) {
	t.Parallel()
	config := twoTopics(t)
	config.Publisher = quiet
	config.Publishers = map[string]publish.Publisher{"orders": newHandlers(t, consumer.OnType("order_placed",
		func(context.Context, *consumer.Event) error { return nil }))}
	if _, err := New(config); err != nil {
		t.Error(err)
	}
	config.Publishers["invoices"] = config.Publishers["orders"]
	if _, err := New(config); err == nil || !strings.Contains(err.Error(),
		`the publisher of the topic "invoices" has no handler for invoice_sent: give each type`) {
		t.Errorf("got %v", err)
	}
}
