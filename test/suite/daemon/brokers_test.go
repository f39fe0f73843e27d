package daemon

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// insertTypes writes events of two types, in turn, of the same aggregates.
const insertTypes = `
INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
SELECT id, CASE WHEN n % 2 = 0 THEN 'order_created' ELSE 'order_billed' END, 'order', n / 2 % 10,
       json_build_object('version', 1, 'eventId', id,
       'occurredAt', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'data', '{}'::json)
  FROM (SELECT overlay(overlay(pg_catalog.gen_random_uuid()::text PLACING '0199' FROM 1) PLACING '7'
       FROM 15)::uuid AS id, n
          FROM generate_series(1, $1) n) e`

// One publisher serves two brokers. While one of them is away, the topics of the other go on; its own wait, and nothing
// is charged. When it is back all arrives, in the order of each aggregate.
func TestTwoBrokersInOnePublisher(t *testing.T) {
	t.Parallel()
	const half = 500
	db, top := pgtest.New(t, pgtest.Servers()[0]), newTopic(t)
	billing := pgtest.NewName("billing")
	text := fmt.Sprintf("contracts:\n  - {type: order_created, aggregate: order, topic: %s}\n"+
		"  - {type: order_billed, aggregate: order, topic: %s}\n", top.name, billing)
	if err := os.WriteFile(top.registry, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	orders, bills := newNATS(t), newEmulator(t, billing)
	orders.start()
	stream := top.stream(t, orders.url())
	bills.stop()
	db.Exec(t, insertTypes, 2*half)
	p := start(t, settings{
		database: db.URL, schema: db.Schema, nats: orders.url(), registry: top.registry,
		more: []string{
			"POSTHASTE_BROKERS=" + billing + "=pubsub", "POSTHASTE_PUBSUB_PROJECT=" + project,
			"POSTHASTE_PUBSUB_ENDPOINT=" + bills.address,
		},
	})
	p.until("the events of the broker that is there are settled", func() bool {
		return db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE state = 6`) == half
	})
	if got := messages(t, stream); got != half {
		t.Errorf("%d of %d orders have arrived", got, half)
	}
	p.untilReady(http.StatusServiceUnavailable, "[-] broker: pubsub: not connected")
	if _, body := p.probe("/readyz?verbose"); !strings.Contains(body, "[+] broker: nats") {
		t.Errorf("the broker that is there is not said to be ready:\n%s", body)
	}
	bills.start()
	p.until("all events are settled", func() bool {
		return db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE state <> 6`) == 0
	})
	p.untilReady(http.StatusOK, "[+] broker: pubsub")
	arrived, newest := map[string]bool{}, map[string]int64{}
	for _, message := range bills.messages() {
		seq, err := strconv.ParseInt(message.Attributes["outbox_seq"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		id, aggregate := message.Attributes["event_id"], message.Attributes["aggregate_id"]
		if !arrived[id] && seq < newest[aggregate] {
			t.Errorf("the event %d of %s comes after %d", seq, aggregate, newest[aggregate])
		}
		arrived[id], newest[aggregate] = true, max(seq, newest[aggregate])
	}
	if len(arrived) != half {
		t.Errorf("%d of %d bills have arrived", len(arrived), half)
	}
	if got := db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE attempt_count > 0`); got != 0 {
		t.Errorf("%d events were charged", got)
	}
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
