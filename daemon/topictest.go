package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// A TopicTest is what a test of one topic came to.
type TopicTest struct {
	Topic string
	// Broker is where it is.
	Broker string
	// Findings are what keeps events from arriving there, or will.
	Findings []Finding
	// Sent is the id of the test message that the broker took; zero: none was sent, or it was not taken.
	Sent outbox.ID
	// Error says why the broker did not take it; empty: it did, or nothing was sent.
	Error string
}

// TestTopics asks the brokers of a configuration about topics, those of the registry if none are named: whether they
// are there, and whether this program may publish to them. If send is true it publishes a message of type
// [outbox.TestType] to each, unless its broker does not answer at all. The error is about the configuration, or about a
// connection.
func (p Program) TestTopics(ctx context.Context, args, environ, topics []string, send bool) (
	tests []TopicTest, err error,
) {
	p = p.withDefaults()
	found, err := p.load(args, environ)
	if err != nil {
		return nil, err
	}
	if len(topics) == 0 {
		topics = found.topics()
	}
	opened, silent := connections{}, slog.New(slog.DiscardHandler)
	if send {
		defer func() { _ = opened.close() }()
		if err := opened.open(ctx, found, p, silent); err != nil {
			return nil, err
		}
	}
	for _, topic := range topics {
		broker := found.brokerOf(topic)
		options := found.optionsOf(broker, p, silent)
		options.Topics = []string{topic}
		test := TopicTest{Topic: topic, Broker: broker.Name, Findings: broker.diagnose(ctx, found.values, options)}
		if send && !slices.ContainsFunc(test.Findings, func(f Finding) bool { return f.Code == "broker_unreachable" }) {
			test.send(ctx, opened[broker.Name].Publisher, options.Deadline)
		}
		tests = append(tests, test)
	}
	return tests, nil
}

// send publishes a test message.
func (t *TopicTest) send(ctx context.Context, publisher publish.Publisher, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	message, err := testMessage(t.Topic, time.Now())
	if err == nil {
		err = publisher.Publish(ctx, message)
	}
	if err != nil {
		t.Error = clean.Error(err)
		return
	}
	t.Sent = message.ID
}

// testMessage is a message that consumers of this project acknowledge and do not handle. It looks like an event of an
// aggregate of its own, and has no number: it stands in no table.
func testMessage(topic string, now time.Time) (*publish.Message, error) {
	id := outbox.NewID()
	body, err := json.Marshal(map[string]any{
		"version": 1, "eventId": id, "occurredAt": now.UTC(), "data": map[string]bool{"test": true},
	})
	if err != nil {
		return nil, fmt.Errorf("test message: %w", err)
	}
	aggregate := outbox.Aggregate{Namespace: outbox.DefaultNamespace, Type: outbox.TestType, ID: id.String()}
	return &publish.Message{
		ID: id, Topic: topic, Key: aggregate.Key(), Body: body, Namespace: aggregate.Namespace,
		EventType: outbox.TestType, AggregateType: aggregate.Type, AggregateID: aggregate.ID, CreatedAt: now, Attempt: 1,
		Attributes: map[string]string{
			"event_id": id.String(), "event_type": outbox.TestType, "aggregate_type": aggregate.Type,
			"aggregate_id": aggregate.ID, "created_at": now.UTC().Format("2006-01-02T15:04:05.000000Z"), "test": "true",
		},
	}, nil
}
