package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

// newConsumer makes a consumer with metrics whose handler returns what the test says.
func newConsumer(t *testing.T, answer *error) (*Consumers, *consumer.Consumer) {
	t.Helper()
	metrics := NewConsumers()
	c, err := consumer.New(consumer.Config{
		Name: "mailer", Observe: metrics.Observe, Logger: slog.New(slog.DiscardHandler),
	},
		consumer.OnType("a", func(context.Context, *consumer.Event) error { return *answer }), consumer.Ignore("b"))
	if err != nil {
		t.Fatal(err)
	}
	metrics.Watch(c)
	return metrics, c
}

func TestConsumers(t *testing.T) {
	t.Parallel()
	var answer error
	metrics, c := newConsumer(t, &answer)
	for name, value := range series(t, metrics) {
		if value != 0 {
			t.Errorf("%s is %v before anything has happened", name, value)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop() // delays end at once
	created := func(ago time.Duration) map[string]string {
		return map[string]string{
			"event_id": outbox.NewID().String(), "event_type": "a",
			"created_at": time.Now().Add(-ago).UTC().Format(time.RFC3339Nano),
		}
	}
	for _, err := range []error{
		nil, consumer.ErrDuplicate, errors.New("x"), consumer.Poison(errors.New("x")), &consumer.DelayError{},
	} {
		answer = err
		c.Process(stopped, created(time.Minute), nil, 1)
	}
	answer = nil
	// by a clock that goes ahead
	c.Process(stopped, created(-time.Hour), nil, 1)
	c.Process(stopped, map[string]string{"event_id": outbox.NewID().String(), "event_type": "a"}, nil, 1) // of unknown age
	c.Process(stopped, map[string]string{"event_id": outbox.NewID().String(), "event_type": "b"}, nil, 1)
	c.Process(stopped, map[string]string{"event_id": outbox.NewID().String(), "event_type": "c"}, nil, 1)
	c.Process(stopped, map[string]string{"event_id": "x", "event_type": "a"}, nil, 1)
	got := series(t, metrics)
	for name, want := range map[string]float64{
		"consumer_events_total{consumer=mailer,event_type=a,outcome=handled}":      3,
		"consumer_events_total{consumer=mailer,event_type=a,outcome=duplicate}":    1,
		"consumer_events_total{consumer=mailer,event_type=a,outcome=failed}":       1,
		"consumer_events_total{consumer=mailer,event_type=a,outcome=poisoned}":     1,
		"consumer_events_total{consumer=mailer,event_type=a,outcome=delayed}":      1,
		"consumer_events_total{consumer=mailer,event_type=a,outcome=ignored}":      0,
		"consumer_events_total{consumer=mailer,event_type=other,outcome=ignored}":  1,
		"consumer_events_total{consumer=mailer,event_type=other,outcome=unknown}":  1,
		"consumer_events_total{consumer=mailer,event_type=other,outcome=poisoned}": 1,
		"consumer_handle_duration_seconds{consumer=mailer}":                        7,
		"consumer_created_to_handled_seconds{consumer=mailer}":                     1,
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s is %v (%v), want %v", name, value, there, want)
		}
	}
}

// Whoever publishes to the topic cannot make series.
func TestLabelsOfConsumersAreBounded(t *testing.T) {
	t.Parallel()
	var answer error
	metrics, c := newConsumer(t, &answer)
	before := len(series(t, metrics))
	for i := range 1_000 {
		c.Process(t.Context(), map[string]string{"event_id": outbox.NewID().String(), "event_type": fmt.Sprint("type ", i)},
			nil, 1)
		c.Process(t.Context(), map[string]string{"event_id": fmt.Sprint(i), "event_type": fmt.Sprint("type ", i)}, nil, 1)
		c.Process(t.Context(), map[string]string{"event_id": outbox.NewID().String()}, nil, 1)
	}
	if after := len(series(t, metrics)); after != before {
		t.Errorf("%d series became %d", before, after)
	}
}

func TestScrapeOfConsumers(t *testing.T) {
	t.Parallel()
	var answer error
	metrics, _ := newConsumer(t, &answer)
	recorder := httptest.NewRecorder()
	metrics.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, part := range []string{
		`posthaste_consumer_events_total{consumer="mailer",event_type="a",outcome="poisoned"} 0`, "go_goroutines ",
	} {
		if text := recorder.Body.String(); recorder.Code != http.StatusOK || !strings.Contains(text, part) {
			t.Errorf("%d, and %s is not in\n%s", recorder.Code, part, text)
		}
	}
}
