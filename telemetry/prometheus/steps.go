package prometheus

import (
	"slices"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// MostLabels is how many topics and how many event types have series of their own. The rest share one, "other".
const MostLabels = 200

const others = "other"

// The values of labels that the registry does not decide.
var (
	classes = []publish.Class{
		publish.Rejected, publish.Terminal, publish.TopicFault, publish.Unknown, publish.NotSent,
	}
	reasons = []string{
		"max_attempts", "unknown_event_type", "invalid_payload", "aggregate_mismatch", "too_large", "rejected",
		"crash_suspect",
	}
	calls = relay.Calls()
)

// steps counts what the relay tells. It is called from the relay's one loop, a few times for each event: all series are
// made before, and so they are there with 0 when nothing has happened yet.
type steps struct {
	published, failed, deadLetters, databaseFail *client.CounterVec
	parked, alarms                               *client.CounterVec
	publishDuration, commitToPublish             *client.HistogramVec
	settleDuration                               *client.HistogramVec

	topics map[string]*topicSeries   // by topic
	types  map[string]client.Counter // by event type
	rest   *topicSeries
	// The series without a label of the registry's.
	parkedNow, alarmed client.Counter
	settled            client.Observer
}

// topicSeries are the series of one topic.
type topicSeries struct {
	publish, lag client.Observer
	failed       map[publish.Class]client.Counter
}

func newSteps() *steps {
	s := &steps{
		published: published.counter(), failed: failed.counter(), deadLetters: deadLetters.counter(),
		databaseFail: databaseFail.counter(),
		parked:       parked.counter(), alarms: alarms.counter(),
		publishDuration: publishDuration.histogram(durations), settleDuration: settleDuration.histogram(durations),
		commitToPublish: commitToPublish.histogram(latencies),
		topics:          map[string]*topicSeries{}, types: map[string]client.Counter{},
	}
	s.parkedNow, s.alarmed, s.settled = s.parked.WithLabelValues(), s.alarms.WithLabelValues(),
		s.settleDuration.WithLabelValues()
	for _, reason := range reasons {
		s.deadLetters.WithLabelValues(reason)
	}
	for _, call := range calls {
		s.databaseFail.WithLabelValues(call)
	}
	return s
}

// know makes the series of a registry, and returns its topics.
func (s *steps) know(registry *outbox.Registry) (topics []string) {
	types := registry.Types()
	for _, eventType := range types {
		if contract, _ := registry.Contract(eventType); !slices.Contains(topics, contract.Topic) {
			topics = append(topics, contract.Topic)
		}
	}
	slices.Sort(topics)
	for i, topic := range topics {
		if i < MostLabels {
			s.topics[topic] = s.newTopic(topic)
		}
	}
	for i, eventType := range types {
		contract, _ := registry.Contract(eventType)
		topic := contract.Topic
		if s.topics[topic] == nil {
			topic = others
		}
		if i < MostLabels {
			s.types[eventType] = s.published.WithLabelValues(topic, eventType)
		}
	}
	if len(topics) > MostLabels {
		s.rest = s.newTopic(others)
	}
	return topics
}

func (s *steps) newTopic(topic string) *topicSeries {
	r := &topicSeries{
		publish: s.publishDuration.WithLabelValues(topic), lag: s.commitToPublish.WithLabelValues(topic),
		failed: map[publish.Class]client.Counter{},
	}
	for _, class := range classes {
		r.failed[class] = s.failed.WithLabelValues(topic, string(class))
	}
	return r
}

// seriesOf finds the series of a topic. One that is not the registry's has none of its own.
func (s *steps) seriesOf(topic string) *topicSeries {
	if r := s.topics[topic]; r != nil {
		return r
	}
	if s.rest == nil {
		s.rest = s.newTopic(others)
	}
	return s.rest
}

func (s *steps) observe(step relay.Step) {
	switch step.Kind {
	case relay.StepAck:
		s.seriesOf(step.Topic).publish.Observe(step.Took.Seconds())
	case relay.StepPublishFailed:
		if counter := s.seriesOf(step.Topic).failed[step.Class]; counter != nil {
			counter.Inc()
		}
	case relay.StepSettle:
		if step.Result == relay.SettleApplied {
			s.settle(step)
		}
	case relay.StepFail:
		s.databaseFail.WithLabelValues(known(step.Call, calls)).Inc()
	case relay.StepAlarm:
		s.alarmed.Inc()
	default: // the others make no number
	}
}

func (s *steps) settle(step relay.Step) {
	s.settled.Observe(step.Took.Seconds())
	switch step.State {
	case relay.StatePublished:
		if counter := s.types[step.Type]; counter != nil {
			counter.Inc()
		} else {
			topic := step.Topic
			if s.topics[topic] == nil {
				topic = others
			}
			s.published.WithLabelValues(topic, others).Inc()
		}
		if step.Lag > 0 {
			s.seriesOf(step.Topic).lag.Observe(step.Lag.Seconds())
		}
	case relay.StateParked:
		s.parkedNow.Inc()
	case relay.StateDead, relay.StateDeadBlocking:
		s.deadLetters.WithLabelValues(known(step.Detail, reasons)).Inc()
	case relay.StateReady, relay.StateRetrying, relay.StateWaiting, relay.StateDiscarded: // these make no number
	}
}

// known keeps a label to its values.
func known(value string, values []string) string {
	if slices.Contains(values, value) {
		return value
	}
	return others
}

func (s *steps) collect(metrics chan<- client.Metric) {
	for _, vec := range []client.Collector{
		s.published, s.failed, s.parked, s.deadLetters, s.databaseFail, s.alarms, s.publishDuration, s.settleDuration,
		s.commitToPublish,
	} {
		vec.Collect(metrics)
	}
}
