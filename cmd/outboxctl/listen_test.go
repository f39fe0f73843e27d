package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// TestListenPrintsWhatArrives: a relay's event, and what somebody else has sent.
func TestListenPrintsWhatArrives(t *testing.T) {
	t.Parallel()
	url := orElse(os.Getenv("SERVICES_NATS_URL"), "nats://127.0.0.1:14222")
	conn, err := natsjetstream.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	topic := "listen-" + strings.ToLower(rand.Text()[:12])
	environment := map[string]string{"POSTHASTE_NATS_URL": url}
	code, _, stderr := call(t, environment, "listen", topic)
	if code != exitNotFound || !strings.Contains(stderr, "nats stream add") {
		t.Errorf("no stream: exit code %d\n%s", code, stderr)
	}
	if _, err := js.CreateStream(within(t), jetstream.StreamConfig{Name: topic, Subjects: []string{topic}}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := js.DeleteStream(context.Background(), topic); err != nil {
			t.Error(err)
		}
	}()
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	id := outbox.NewID()
	body := `{"version":1,"eventId":"` + id.String() + `","occurredAt":"2026-01-01T00:00:00Z","data":{"total":1}}`
	if err := publisher.Publish(within(t), &publish.Message{
		ID: id, Topic: topic, Key: "default/order/7", Body: []byte(body), CreatedAt: time.Now(),
		Attributes: map[string]string{
			"event_id": id.String(), "event_type": "order_created", "aggregate_type": "order", "aggregate_id": "7",
			"created_at": time.Now().UTC().Format(time.RFC3339Nano),
		},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(within(t), topic, []byte("no JSON \x1b[2J")); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, environment, "listen", topic, "--since", "1h", "--count", "2", "-o", "ndjson")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var event dev.Delivered
	if code != exitDone || len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &event) != nil {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if event.ID != id || event.Type != "order_created" || event.Aggregate != "order/7" || event.Topic != topic ||
		string(event.Data) != `{"total":1}` {
		t.Errorf("got %+v", event)
	}
	if !strings.Contains(lines[1], `"data":"no JSON \u001b[2J"`) {
		t.Errorf("got %s", lines[1])
	}
}

// TestListenSaysWhatToDo about a broker that is not given, not there, or on another machine.
func TestListenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]struct {
		code int
		says string
	}{
		"":                            {exitUsage, "set POSTHASTE_NATS_URL"},
		"nats://u:s3cr3t@10.0.0.1:42": {exitUsage, "10.0.0.1 is not on this machine: write tls://"},
		"nats://u:s3cr3t@127.0.0.1:1": {exitFailed, "does POSTHASTE_NATS_URL lead to it?"},
	} {
		code, stdout, stderr := call(t, map[string]string{"POSTHASTE_NATS_URL": url}, "listen", "orders")
		if code != want.code || !strings.Contains(stderr, want.says) || strings.Contains(stdout+stderr, "s3cr3t") {
			t.Errorf("%s: exit code %d\n%s%s", url, code, stdout, stderr)
		}
	}
}

// TestListenKnowsTheBroker by what the environment names, and says what is missing at Pub/Sub.
func TestListenKnowsTheBroker(t *testing.T) {
	t.Parallel()
	emulator := orElse(os.Getenv("SERVICES_PUBSUB_ADDR"), "127.0.0.1:18085")
	at := map[string]string{"POSTHASTE_PUBSUB_PROJECT": "listen", "POSTHASTE_PUBSUB_ENDPOINT": emulator}
	both := map[string]string{"POSTHASTE_PUBSUB_PROJECT": "listen", "POSTHASTE_NATS_URL": "nats://127.0.0.1:1"}
	for _, c := range []struct {
		environment map[string]string
		args        string
		code        int
		says        string
	}{
		{at, "listen nothing-here", exitNotFound, "gcloud pubsub topics create nothing-here"},
		{at, "listen a --since 1h", exitUsage, "--since"},
		{both, "listen a", exitUsage, "--broker nats or --broker pubsub"},
		{both, "listen a --broker kafka", exitUsage, "it is nats or pubsub"},
		{nil, "listen a --broker pubsub", exitUsage, "pubsub.project: is missing"},
	} {
		code, stdout, stderr := call(t, c.environment, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}
