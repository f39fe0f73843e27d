package prometheus

import (
	"context"
	"net/http"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

// Consumers are the metrics of a program's consumers, one or many. Give [Consumers.Observe] to each one's
// configuration. It is an http.Handler and a collector as [Metrics] is.
type Consumers struct {
	events        *client.CounterVec
	duration, age *client.HistogramVec
	handler       http.Handler
}

var _ client.Collector = (*Consumers)(nil)

// NewConsumers returns the metrics of consumers that are made next.
func NewConsumers() *Consumers {
	c := &Consumers{
		events: consumerEvents.counter(), duration: consumerDuration.histogram(durations),
		age: consumerAge.histogram(latencies),
	}
	c.handler = newHandler(c)
	return c
}

// Watch makes the series of a consumer, so that they are there with 0 and the first failure is seen as an increase.
func (c *Consumers) Watch(watched *consumer.Consumer) {
	name := watched.Name()
	c.duration.WithLabelValues(name)
	c.age.WithLabelValues(name)
	for _, outcome := range consumer.Outcomes {
		c.events.WithLabelValues(name, others, string(outcome))
		for _, eventType := range watched.Types() {
			c.events.WithLabelValues(name, eventType, string(outcome))
		}
	}
}

// Observe counts what became of an event; it is a consumer's Config.Observe. Types without a handler are one, "other":
// whoever publishes to the topic chooses them.
func (c *Consumers) Observe(_ context.Context, observation consumer.Observation) {
	event := observation.Event
	if observation.Outcome == consumer.Ignored || observation.Outcome == consumer.Unknown || event.ID == (outbox.ID{}) ||
		event.Type == "" {
		c.events.WithLabelValues(observation.Consumer, others, string(observation.Outcome)).Inc()
		return
	}
	c.events.WithLabelValues(observation.Consumer, event.Type, string(observation.Outcome)).Inc()
	c.duration.WithLabelValues(observation.Consumer).Observe(observation.Took.Seconds())
	if observation.Outcome != consumer.Handled || event.CreatedAt.IsZero() {
		return
	}
	if age := time.Since(event.CreatedAt); age >= 0 {
		c.age.WithLabelValues(observation.Consumer).Observe(age.Seconds())
	}
}

// ServeHTTP answers a scrape.
func (c *Consumers) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// Describe is for a registry.
func (c *Consumers) Describe(descs chan<- *client.Desc) {
	for _, metric := range ofConsumers {
		descs <- metric.desc
	}
}

// Collect is for a registry.
func (c *Consumers) Collect(metrics chan<- client.Metric) {
	c.events.Collect(metrics)
	c.duration.Collect(metrics)
	c.age.Collect(metrics)
}
