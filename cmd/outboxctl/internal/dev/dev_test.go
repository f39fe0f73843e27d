package dev

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// TestTheDemoHasSomethingToShow: events that are delivered, one that dies, a topic that pauses and goes on.
func TestTheDemoHasSomethingToShow(t *testing.T) {
	t.Parallel()
	url := os.Getenv("SERVICES_POSTGRES18_URL")
	if url == "" {
		url = "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable"
	}
	pool, schema := relaytest.Database(t, url)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	notices, delivered := make(chan Notice, 1000), make(chan Delivered, 100_000)
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, pool, Config{
			Database: url, Schema: schema, Demo: true, Ready: func() {},
			Delivered: func(event Delivered) error { delivered <- event; return nil },
			Notice: func(notice Notice) {
				select {
				case notices <- notice:
				default: // what is wanted was among those that came
				}
			},
			pace: pace{gap: 20 * time.Millisecond, up: 5 * time.Second, down: 5 * time.Second},
		})
		ended <- err
	}()
	wanted := map[string]bool{
		"attempt 1: rejected: the invoice service": true, "is dead: ": true, "topic shipment is paused": true,
		"topic shipment goes on": true,
	}
	for len(wanted) > 0 {
		select {
		case notice := <-notices:
			for text := range wanted {
				if strings.Contains(notice.Text, text) {
					delete(wanted, text)
				}
			}
		case err := <-ended:
			t.Fatalf("it ended: %v; missing: %v", err, wanted)
		}
	}
	types := map[string]bool{}
	for len(types) < len(demoTypes)-1 {
		event := <-delivered
		types[event.Type] = true
		if event.Type == demoRejected {
			t.Error("an event was delivered that the broker rejects")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var dead int
	if err := pool.QueryRow(t.Context(), named("SELECT count(*) FROM {schema}.outbox_dlq", schema)).
		Scan(&dead); err != nil || dead == 0 {
		t.Errorf("%d dead letters, %v", dead, err)
	}
}
