package prometheus_test

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
)

// A relay without a daemon shows its metrics on an address of its own. In a daemon.Program it is one line:
// Metrics: prometheus.New().
func Example() {
	registry, err := outbox.NewRegistry(outbox.Define[map[string]any](outbox.Contract{
		Type: "order_created", Aggregate: "order", Topic: "orders",
	}))
	if err != nil {
		log.Fatal(err)
	}
	config := relay.Config{
		Database: "postgres://relay@db.example.com/shop?sslmode=verify-full", Registry: registry,
		SurveyEvery: 15 * time.Second,
		Publisher:   publish.PublisherFunc(func(context.Context, *publish.Message) error { return nil }),
	}
	metrics := prometheus.New()
	metrics.Configure(&config)
	r, err := relay.New(config)
	if err != nil {
		log.Fatal(err)
	}
	metrics.Watch(r)
	http.Handle("GET /metrics", metrics)
	go func() { log.Print(http.ListenAndServe("127.0.0.1:8086", nil)) }()
	log.Print(r.Run(context.Background()))
}

// A program's consumers share one set of metrics.
func ExampleConsumers() {
	metrics := prometheus.NewConsumers()
	mailer, err := consumer.New(consumer.Config{Name: "mailer", Observe: metrics.Observe},
		consumer.OnType("order_created", func(context.Context, *consumer.Event) error { return nil }))
	if err != nil {
		log.Fatal(err)
	}
	metrics.Watch(mailer)
	http.Handle("GET /metrics", metrics)
}
