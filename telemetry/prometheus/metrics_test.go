package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

func registryOf(t *testing.T, topics, typesEach int) *outbox.Registry {
	t.Helper()
	var contracts []outbox.AnyContract
	for topic := range topics {
		for i := range typesEach {
			contracts = append(contracts, outbox.Define[map[string]any](outbox.Contract{
				Type: fmt.Sprintf("type_%04d_%04d", topic, i), Aggregate: "thing", Topic: fmt.Sprintf("topic-%04d", topic),
			}))
		}
	}
	registry, err := outbox.NewRegistry(contracts...)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// newMetrics returns metrics, and what a relay would call with its steps.
func newMetrics(t *testing.T, registry *outbox.Registry) (*Metrics, func(relay.Step)) {
	t.Helper()
	metrics := New()
	config := relay.Config{Registry: registry, Version: "v1.2.3"}
	metrics.Configure(&config)
	return metrics, config.Observe
}

// series gathers every series as text, and its value; that of a histogram is its count.
func series(t *testing.T, metrics client.Collector) map[string]float64 {
	t.Helper()
	registry := client.NewPedanticRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			name := strings.TrimPrefix(family.GetName(), "posthaste_") + "{" + strings.Join(labels, ",") + "}"
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

func TestSteps(t *testing.T) {
	t.Parallel()
	metrics, observe := newMetrics(t, registryOf(t, 2, 2))
	const topic, kind = "topic-0001", "type_0001_0000"
	for _, step := range []relay.Step{
		{Kind: relay.StepPublish, Topic: topic, Type: kind},
		{Kind: relay.StepAck, Topic: topic, Type: kind, Took: time.Millisecond},
		{
			Kind: relay.StepSettle, Result: relay.SettleApplied, State: relay.StatePublished, Topic: topic, Type: kind,
			Took: time.Second, Lag: time.Minute,
		},
		{
			Kind: relay.StepSettle, Result: relay.SettleUncertain, State: relay.StatePublished, Topic: topic, Type: kind,
			Lag: time.Minute,
		},
		{
			Kind: relay.StepSettle, Result: relay.SettleStale, State: relay.StatePublished, Topic: topic, Type: kind,
			Lag: time.Minute,
		},
		// whose time is not known
		{Kind: relay.StepSettle, Result: relay.SettleApplied, State: relay.StatePublished, Topic: topic, Type: kind},
		{Kind: relay.StepPublishFailed, Topic: topic, Type: kind, Class: publish.TopicFault},
		{Kind: relay.StepSettle, Result: relay.SettleApplied, State: relay.StateParked},
		{Kind: relay.StepSettle, Result: relay.SettleApplied, State: relay.StateDead, Detail: "max_attempts"},
		{Kind: relay.StepSettle, Result: relay.SettleApplied, State: relay.StateDeadBlocking, Detail: "too_large"},
		{Kind: relay.StepFail, Call: "read"},
		{Kind: relay.StepAlarm},
	} {
		observe(step)
	}
	got := series(t, metrics)
	for name, want := range map[string]float64{
		"relay_published_events_total{event_type=type_0001_0000,topic=topic-0001}": 2,
		"relay_published_events_total{event_type=type_0000_0000,topic=topic-0000}": 0,
		"relay_failed_publishes_total{class=topic_fault,topic=topic-0001}":         1,
		"relay_failed_publishes_total{class=rejected,topic=topic-0001}":            0,
		"relay_parked_events_total{}":                                              1,
		"relay_dead_letters_total{reason=max_attempts}":                            1,
		"relay_dead_letters_total{reason=too_large}":                               1,
		"relay_dead_letters_total{reason=crash_suspect}":                           0,
		"relay_database_errors_total{call=read}":                                   1,
		"relay_alarms_total{}":                                                     1,
		"relay_publish_duration_seconds{topic=topic-0001}":                         1,
		"relay_settle_duration_seconds{}":                                          5,
		"relay_commit_to_publish_seconds{topic=topic-0001}":                        1,
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s is %v (%v), want %v", name, value, there, want)
		}
	}
}

// TestLabelsAreBounded feeds what a hostile or huge registry, and a table full of strange types, could bring.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	metrics, observe := newMetrics(t, registryOf(t, 300, 2))
	for i := range 10_000 {
		topic, kind := fmt.Sprintf("topic-%04d", i%600), fmt.Sprintf("type_%04d_%04d", i%600, i)
		observe(relay.Step{Kind: relay.StepAck, Topic: topic, Type: kind, Took: 1})
		observe(relay.Step{Kind: relay.StepPublishFailed, Topic: topic, Type: kind, Class: publish.Rejected})
		observe(relay.Step{
			Kind: relay.StepSettle, Result: relay.SettleApplied, State: relay.StatePublished, Topic: topic, Type: kind, Lag: 1,
		})
		observe(relay.Step{
			Kind: relay.StepSettle, Result: relay.SettleApplied, State: relay.StateDead, Detail: fmt.Sprint("reason ", i),
		})
		observe(relay.Step{Kind: relay.StepFail, Detail: fmt.Sprint(i)})
	}
	counts := map[string]int{}
	for name := range series(t, metrics) {
		family, _, _ := strings.Cut(name, "{")
		counts[family]++
	}
	for family, most := range map[string]int{
		"relay_published_events_total":   2*MostLabels + 1,
		"relay_failed_publishes_total":   (MostLabels + 1) * len(classes),
		"relay_publish_duration_seconds": MostLabels + 1, "relay_commit_to_publish_seconds": MostLabels + 1,
		"relay_dead_letters_total": len(reasons) + 1, "relay_database_errors_total": len(calls) + 1,
	} {
		if counts[family] > most || counts[family] == 0 {
			t.Errorf("%s has %d series, want at most %d", family, counts[family], most)
		}
	}
}

// TestObserveIsPassedOn: whoever observed before still does.
func TestObserveIsPassedOn(t *testing.T) {
	t.Parallel()
	var told []relay.Step
	config := relay.Config{Registry: registryOf(t, 1, 1), Observe: func(step relay.Step) { told = append(told, step) }}
	New().Configure(&config)
	config.Observe(relay.Step{Kind: relay.StepAlarm})
	if len(told) != 1 {
		t.Errorf("%d steps were passed on, want 1", len(told))
	}
}

// TestScrape asks over HTTP, before there is a relay to watch and after.
func TestScrape(t *testing.T) {
	t.Parallel()
	metrics := New()
	config := relay.Config{
		Registry: registryOf(t, 1, 1), Version: "v1.2.3", Database: "postgres://nobody@127.0.0.1:1/none",
		SurveyEvery: time.Second,
		Publisher:   publish.PublisherFunc(func(context.Context, *publish.Message) error { return nil }),
	}
	metrics.Configure(&config)
	scrape := func() string {
		answer := httptest.NewRecorder()
		metrics.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		if answer.Code != http.StatusOK {
			t.Fatal(errors.New(answer.Body.String()))
		}
		return answer.Body.String()
	}
	for _, part := range []string{
		`posthaste_build_info{go_version="go`, `version="v1.2.3"} 1`, "go_goroutines ", "process_cpu_seconds_total ",
	} {
		if text := scrape(); !strings.Contains(text, part) {
			t.Errorf("%s is not in\n%s", part, text)
		}
	}
	made, err := relay.New(config)
	if err != nil {
		t.Fatal(err)
	}
	metrics.Watch(made)
	text := scrape()
	for _, part := range []string{
		"posthaste_relay_lanes 0\n", `posthaste_relay_topic_paused{topic="topic-0000"} 0`,
		`posthaste_survey_age_seconds{part="ready"} `,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in\n%s", part, text)
		}
	}
	// Nothing was asked yet: to say 0 would be a lie.
	if strings.Contains(text, "posthaste_outbox_") {
		t.Errorf("something is said about an outbox that nobody has asked:\n%s", text)
	}
}
