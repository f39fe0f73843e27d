package dev

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// TestATerminalThatIsGoneEndsIt: what nobody can see is neither published nor charged.
func TestATerminalThatIsGoneEndsIt(t *testing.T) {
	t.Parallel()
	url := serverURL()
	pool, schema := relaytest.Database(t, url)
	// The second is of a type that no contract can have: it must not stop the others.
	for _, statement := range []string{
		"SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')",
		`INSERT INTO {schema}.outbox_events (id, namespace, lane, event_type, aggregate_type, aggregate_id, payload_json)
			VALUES ({schema}.outbox_uuid7(), 'default', 1, 'no type', 'order', '1', '{}')`,
	} {
		if _, err := pool.Exec(t.Context(), named(statement, schema)); err != nil {
			t.Fatal(err)
		}
	}
	gone := errors.New("the terminal is gone")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	delivered, err := Run(ctx, pool, Config{
		Database: url, Schema: schema, Ready: func() {}, Notice: func(Notice) {},
		Delivered: func(Delivered) error { return gone },
	})
	var left string
	if asking := pool.QueryRow(t.Context(), named(`SELECT string_agg(status || ' ' || attempt_count, ',' ORDER BY status)
		FROM {schema}.outbox_status WHERE event_type = 'order_created'`, schema)).Scan(&left); asking != nil {
		t.Fatal(asking)
	}
	if !errors.Is(err, gone) || delivered != 0 || left != "pending 0" && left != "retrying 0" {
		t.Errorf("%d delivered, %v, left: %s", delivered, err, left)
	}
}

// patience is how long a test waits for what takes a moment, also on a busy machine: only what hangs takes as long.
const patience = 3 * time.Minute

func serverURL() string {
	if url := os.Getenv("SERVICES_POSTGRES18_URL"); url != "" {
		return url
	}
	return "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable"
}

// TestTheDemoHasSomethingToShow: events that are delivered, one that dies, a topic that pauses and goes on.
func TestTheDemoHasSomethingToShow(t *testing.T) {
	t.Parallel()
	url := serverURL()
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
	tooLong := time.After(patience)
	for len(wanted) > 0 {
		select {
		case <-tooLong:
			t.Fatalf("missing: %v", wanted)
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
		select {
		case event := <-delivered:
			types[event.Type] = true
			if event.Type == demoRejected {
				t.Error("an event was delivered that the broker rejects")
			}
		case <-tooLong:
			t.Fatalf("only these types come: %v", types)
		}
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	var dead int
	if err := pool.QueryRow(t.Context(), named("SELECT count(*) FROM {schema}.outbox_dlq", schema)).
		Scan(&dead); err != nil || dead == 0 {
		t.Errorf("%d dead letters, %v", dead, err)
	}
}
