package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// A mailer is a consumer with metrics, whose handler returns what the test says.
type mailer struct {
	*consumer.Consumer
	answer error
	url    string // of /metrics
}

func newConsumer(t *testing.T) *mailer {
	t.Helper()
	m, metrics := &mailer{}, prometheus.NewConsumers()
	var err error
	m.Consumer, err = consumer.New(consumer.Config{
		Name: "mailer", Observe: metrics.Observe, Logger: slog.New(slog.DiscardHandler),
	},
		consumer.OnType("order_placed", func(context.Context, *consumer.Event) error { return m.answer }),
		consumer.Ignore("order_lost"))
	if err != nil {
		t.Fatal(err)
	}
	metrics.Watch(m.Consumer)
	server := httptest.NewServer(metrics)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *mailer) scrape(t *testing.T) map[string]*family {
	t.Helper()
	return scrape(t, m.url)
}

// A consumer has the metrics that are promised, and each moves with what happens.
func TestMetricsOfAConsumerTellTheTruth(t *testing.T) {
	t.Parallel()
	m := newConsumer(t)
	stopping, stop := context.WithCancel(t.Context())
	stop() // a delay ends at once
	event := func(eventType string) map[string]string {
		return map[string]string{
			"event_id": outbox.NewID().String(), "event_type": eventType,
			"created_at": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano),
		}
	}
	for _, is := range []struct {
		outcome, eventType, sent string
		answer                   error
	}{
		{"handled", "order_placed", "order_placed", nil},
		{"duplicate", "order_placed", "order_placed", consumer.ErrDuplicate},
		{"ignored", "other", "order_lost", nil},
		{"unknown", "other", "order_found", nil},
		{"delayed", "order_placed", "order_placed", &consumer.DelayError{Err: errors.New("x")}},
		{"failed", "order_placed", "order_placed", errors.New("x")},
		{"poisoned", "order_placed", "order_placed", consumer.Poison(errors.New("x"))},
		{"poisoned", "other", "", nil},
	} {
		series := `{consumer="mailer",event_type="` + is.eventType + `",outcome="` + is.outcome + `"}`
		before := m.scrape(t)
		m.answer = is.answer
		m.Process(stopping, event(is.sent), nil, 1)
		after := m.scrape(t)
		const events, ran, late = "posthaste_consumer_events_total", "posthaste_consumer_handle_duration_seconds",
			"posthaste_consumer_created_to_handled_seconds"
		if value, there := before[events].series[series]; !there || value != 0 || after[events].series[series] != 1 {
			t.Errorf("%s went from %v (%t) to %v", series, value, there, after[events].series[series])
		}
		const count, sum = `{consumer="mailer"}_count`, `{consumer="mailer"}_sum`
		runs := after[ran].series[count] - before[ran].series[count]
		if (runs == 1) != (is.eventType == "order_placed") {
			t.Errorf("%s: the handler ran %v times", series, runs)
		}
		age := after[late].series[sum] - before[late].series[sum]
		if is.outcome == "handled" && (age < 3600 || age > 3600+eventually.Patience.Seconds()) ||
			is.outcome != "handled" && age != 0 {
			t.Errorf("%s: it is said to be %v s late", series, age)
		}
	}
	families := m.scrape(t)
	for _, p := range promises(t, "consumers") {
		f := families[p.name]
		if f == nil || f.kind != p.kind || f.help != p.help || !slices.Equal(f.labels, p.labels) {
			t.Errorf("promised is %+v, there is %+v", p, f)
		}
		delete(families, p.name)
	}
	for name := range families {
		t.Errorf("%s is there, and not promised", name)
	}
}
