// Package prometheus shows what a relay does, and what consumers do, as metrics of Prometheus. The names are a
// contract: docs/reference/metrics.md has them, with alert rules in deploy/prometheus and a dashboard in
// deploy/grafana.
//
// Labels are bounded by the registry: topics and event types that it has, up to [MostLabels] of each, and no ids.
// A scrape asks no server: what is known about the tables comes from the relay's survey, and says how old it is.
package prometheus

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/survey"
)

// Metrics are those of one relay. It is an http.Handler that answers a scrape with them and with those of the Go
// runtime and the process. Whoever has a registry of their own registers it there instead: it is a collector.
type Metrics struct {
	steps   *steps
	relay   atomic.Pointer[relay.Relay]
	topics  []string
	version string
	handler http.Handler
}

var _ client.Collector = (*Metrics)(nil)

// New returns the metrics of a relay that is made next: give its configuration to Configure, and the relay to Watch.
func New() *Metrics {
	m := &Metrics{steps: newSteps()}
	m.handler = newHandler(m)
	return m
}

// newHandler answers scrapes with these metrics and those of the Go runtime and the process.
func newHandler(metrics client.Collector) http.Handler {
	registry := client.NewRegistry()
	registry.MustRegister(metrics, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// Configure has the relay of this configuration tell its steps. Without a SurveyEvery there are no metrics about the
// outbox, only those about the relay.
func (m *Metrics) Configure(config *relay.Config) {
	m.version = config.Version
	m.topics = m.steps.know(config.Registry)
	next := config.Observe
	config.Observe = func(step relay.Step) {
		m.steps.observe(step)
		if next != nil {
			next(step)
		}
	}
}

// Watch shows also how this relay stands.
func (m *Metrics) Watch(r *relay.Relay) { m.relay.Store(r) }

// ServeHTTP answers a scrape.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// Describe is for a registry.
func (m *Metrics) Describe(descs chan<- *client.Desc) {
	for _, metric := range all {
		descs <- metric.desc
	}
}

// Collect is for a registry.
func (m *Metrics) Collect(metrics chan<- client.Metric) {
	to := collector(metrics)
	to.gauge(buildInfo, 1, m.version, runtime.Version())
	m.steps.collect(metrics)
	r := m.relay.Load()
	if r == nil {
		return
	}
	stats := r.Stats()
	to.gauge(lanesHeld, float64(stats.Lanes))
	to.gauge(inFlight, float64(stats.InFlight))
	to.counter(staleSettles, float64(stats.StaleSettles))
	to.gauge(watermarkLag, float64(stats.WatermarkLag))
	to.gauge(oldestWriter, stats.OldestWriter.Seconds())
	to.gauge(relayPaused, truth(r.RestoreHold() != nil))
	stopped := r.FailingTopics()
	other := 0.0
	for i, topic := range m.topics {
		_, is := stopped[topic]
		if i < MostLabels {
			to.gauge(topicPaused, truth(is), topic)
		} else {
			other = max(other, truth(is))
		}
	}
	if len(m.topics) > MostLabels {
		to.gauge(topicPaused, other, others)
	}
	to.survey(r.Survey())
}

// collector sends numbers as they are now.
type collector chan<- client.Metric

func (c collector) gauge(m *metric, value float64, labels ...string) {
	c <- client.MustNewConstMetric(m.desc, client.GaugeValue, value, labels...)
}

func (c collector) counter(m *metric, value float64, labels ...string) {
	c <- client.MustNewConstMetric(m.desc, client.CounterValue, value, labels...)
}

// survey shows what was found. What a part has never found is left out: a 0 would be a lie.
func (c collector) survey(found survey.Report) {
	if len(found.Parts) == 0 {
		return
	}
	c.gauge(surveyLimit, survey.Limit)
	for name, part := range found.Parts {
		c.gauge(surveyAge, time.Since(part.At).Seconds(), name)
		c.counter(surveyFailures, float64(part.Failures), name)
		if part.Took == 0 {
			continue
		}
		c.gauge(surveyDuration, part.Took.Seconds(), name)
		switch name {
		case "ready":
			c.waiting("ready", found.Ready)
		case "held":
			c.waiting("retrying", found.Retrying)
			c.waiting("parked", found.Parked)
			c.waiting("waiting", found.Waiting)
		case "dead":
			c.gauge(deadEvents, float64(found.Dead.Events))
			c.gauge(oldestAge, found.Dead.Oldest.Seconds(), "dead")
			c.gauge(maxAttempts, float64(found.MaxAttempts))
			c.gauge(blockedAggregates, float64(found.BlockedAggregates))
		case "fleet":
			c.gauge(unheldLanes, float64(found.UnheldLanes))
			c.gauge(relays, float64(found.Relays))
			c.gauge(pauses, float64(found.Pauses.All), "all")
			c.gauge(pauses, float64(found.Pauses.Topics), "topic")
			c.gauge(pauses, float64(found.Pauses.Types), "type")
		case "retention":
			c.retention(found.Retention)
		}
	}
}

func (c collector) waiting(state string, count survey.Count) {
	c.gauge(backlog, float64(count.Events), state)
	c.gauge(oldestAge, count.Oldest.Seconds(), state)
}

func (c collector) retention(kinds []survey.Retention) {
	for _, kind := range kinds {
		c.counter(retentionDeleted, float64(kind.Deleted), kind.Kind)
		c.gauge(retentionHalted, truth(kind.Halted), kind.Kind)
		if kind.Ran {
			c.gauge(retentionAge, kind.Age.Seconds(), kind.Kind)
		}
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
